"""Captions of images in three splits: Flickr's token lines with image lists, or Karpathy's JSON.

Words are made as in Karpathy & Fei-Fei (2015): lower case, every character that is neither a letter
nor a digit is discarded ("t-shirt" → "tshirt", "." vanishes), words seen fewer than `min_count`
times in training become `<unk>`. With 5 this leaves 2,537 words of Flickr8k; they count 2,538, the
end included. Each caption begins with `<start>` and ends with `<eos>`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import A_FOLDER, decode_utf8, expect_file, no_file
from .catalogue import DATASETS, DataSet
from .corpora import SPLITS, open_text
from .features import SUFFIXES, ImageFeatures, features_from_bytes, names_in, read_features
from .spelling import words_of
from .vocabulary import END, UNKNOWN, Vocabulary

START = "<start>"
LISTS = {
    "train": ("*train*.txt",), "valid": ("*dev*.txt", "*val*.txt"), "test": ("*test*.txt",),
}
"""How the image lists of a token file are named, beside it."""
TOKENS = ("*.token.txt", "*.token")
"""The caption file of Hodosh and others, with three lists of images beside it."""
WORD = re.compile(r"[^\W_]")
KARPATHY = {"train": "train", "restval": "train", "val": "valid", "test": "test"}
CAPTIONED = tuple(name for name, known in DATASETS.items() if "captions" in known.files)
"""The data sets that are captioned images."""


@dataclass(frozen=True)
class Captions:
    """What people wrote about each image, and which images belong to which split."""

    texts: dict[str, list[str]]
    """Image name → its captions as they were written: the references of the metrics."""
    splits: dict[str, list[str]]
    """Split → image names."""
    sha256: str


def open_captioned(corpus: str, features: str | None) -> tuple[Captions, ImageFeatures]:
    """A data set by name, or a caption file or folder with the file of its features."""
    known = DATASETS.get(corpus)
    if known is None:
        captions = read_captions(Path(corpus))
        return captions, read_features(features_beside(Path(corpus), features))
    if "captions" not in known.files:
        raise LangevinError(
            f"{corpus} has no captions; use {', '.join(CAPTIONED)} or a caption file"
        )
    captions = captions_of(known)
    return captions, features_of(known) if features is None else read_features(Path(features))


def captions_of(known: DataSet) -> Captions:
    """As the catalogue names them, or token lines with lists where people may bring their own."""
    path = known.folder / known.files["captions"].name
    others = None if is_there(known, "captions") else first_of(known.folder, TOKENS)
    if others is not None:
        return read_captions(others)
    raw = known.read("captions")
    if path.suffix == ".json":
        return checked(path, *parse_karpathy(path, raw), [raw])
    lists = {s: (known.folder / known.files[s].name, known.read(s)) for s in SPLITS}
    return from_token_lines(path, raw, lists)


def features_of(known: DataSet) -> ImageFeatures:
    """As the catalogue names them, or the only ones there where people may bring their own."""
    if not is_there(known, "features") and feature_files(known.folder):
        return read_features(features_beside(known.folder, None))
    source = known.folder / known.files["features"].name
    return features_from_bytes(known.read("features"), known.read("names"), str(source))


def is_there(known: DataSet, key: str) -> bool:
    """Whether this very file is to be read: it is there, or no other will do."""
    file = known.files[key]
    return bool(file.sha256) or (known.folder / file.name).is_file()


def features_beside(corpus: Path, features: str | None) -> Path:
    """The features that the recipe names, or the only ones in the folder of the captions."""
    if features is not None:
        return Path(features)
    folder = corpus if corpus.is_dir() else corpus.parent
    found = feature_files(folder)
    if len(found) != 1:
        raise LangevinError(
            f"expected one file of image features in {folder} ({', '.join(SUFFIXES)}), found "
            f"{len(found)}; name it in the recipe: features = \"FILE\""
        )
    return found[0]


def feature_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)


def read_captions(path: Path) -> Captions:
    """Karpathy's JSON, a token file with its image lists beside it, or a folder with either."""
    if no_file(path) == A_FOLDER:
        path = caption_file_in(path)
    known = ", ".join(CAPTIONED)
    expect_file(path, "captions at", f"pass a caption file, its folder, or one of {known}")
    raw = open_text(path).read()
    if path.suffix == ".json":
        return checked(path, *parse_karpathy(path, raw), [raw])
    lists = {split: find_list(path, split) for split in SPLITS}
    listed = {split: (file, open_text(file).read()) for split, file in lists.items()}
    return from_token_lines(path, raw, listed)


def from_token_lines(path: Path, raw: bytes, lists: dict[str, tuple[Path, bytes]]) -> Captions:
    """The contents of a token file and of its image lists."""
    names = {split: names_in(content, str(source)) for split, (source, content) in lists.items()}
    contents = [raw, *(content for _, content in lists.values())]
    return checked(path, parse_token_lines(path, raw), names, contents)


def first_of(folder: Path, patterns: Iterable[str]) -> Path | None:
    found = (path for pattern in patterns for path in sorted(folder.glob(pattern)))
    return next(found, None)


def caption_file_in(folder: Path) -> Path:
    """The one caption file of a folder."""
    if found := first_of(folder, ("*.json", *TOKENS)):
        return found
    raise LangevinError(
        f"expected captions in {folder} (Karpathy's dataset_*.json, or *.token.txt with three "
        f"image lists), found none"
    )


def find_list(path: Path, split: str) -> Path:
    """The image list of a split, beside the token file."""
    found = [p for pattern in LISTS[split] for p in sorted(path.parent.glob(pattern)) if p != path]
    if not found:
        wanted = " or ".join(LISTS[split])
        raise LangevinError(
            f"expected the image list of the {split} split beside {path}, named like {wanted}; put "
            f"it there (one image name a line), or use Karpathy's JSON, which carries its splits"
        )
    return found[0]


def parse_token_lines(path: Path, raw: bytes) -> dict[str, list[str]]:
    """Lines `name.jpg#0<TAB>caption` → captions of each image."""
    texts: dict[str, list[str]] = {}
    for number, line in enumerate(decode_utf8(raw, str(path)).splitlines(), start=1):
        key, tab, text = line.partition("\t")
        name, hash_sign, _ = key.rpartition("#")
        if tab and hash_sign and name:
            texts.setdefault(name, []).append(text)
        elif line.strip():
            raise LangevinError(
                f"expected 'image.jpg#0<TAB>caption' in line {number} of {path}, got "
                f"{line[:60]!r}; mend that line"
            )
    return texts


def parse_karpathy(path: Path, raw: bytes) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Captions and splits of a list of images, each with filename, split and sentences."""
    texts: dict[str, list[str]] = {}
    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    try:
        for image in json.loads(decode_utf8(raw, str(path)))["images"]:
            texts[image["filename"]] = [text_of(sentence) for sentence in image["sentences"]]
            if image["split"] in KARPATHY:
                splits[KARPATHY[image["split"]]].append(image["filename"])
    except (ValueError, KeyError, TypeError) as error:
        raise LangevinError(
            f"expected Karpathy's JSON in {path} (images with filename, split and sentences), it "
            f"cannot be read: {error!r}; use his dataset files or the token format"
        ) from None
    return texts, splits


def text_of(sentence: dict[str, Any]) -> str:
    """As it was written, or the words it was cut into."""
    return str(sentence["raw"]) if "raw" in sentence else " ".join(sentence["tokens"])


def checked(
    path: Path, texts: dict[str, list[str]], splits: dict[str, list[str]], contents: Iterable[bytes]
) -> Captions:
    """The same, where every split has images of its own, each with captions that have words."""
    seen: dict[str, str] = {}
    for split, names in splits.items():
        if not names:
            raise LangevinError(
                f"the {split} split of {path} has no images; every split needs some"
            )
        if bare := [n for n in names if not any(WORD.search(text) for text in texts.get(n, []))]:
            raise LangevinError(
                f"{len(bare)} of {len(names)} images of the {split} split have no caption in "
                f"{path}, first {bare[0]!r}; add captions or take them off the list"
            )
        if len(set(names)) < len(names):
            twice = next(name for number, name in enumerate(names) if name in names[:number])
            raise LangevinError(
                f"{twice!r} is listed twice in the {split} split of {path}; list each image once"
            )
        if shared := next((name for name in names if name in seen), None):
            raise LangevinError(
                f"expected splits of different images in {path}, got {shared!r} in both "
                f"{seen[shared]} and {split}; take it off one of the lists"
            )
        seen |= dict.fromkeys(names, split)
    return Captions(texts, splits, hashlib.sha256(b"".join(contents)).hexdigest())


def with_marks(text: str) -> list[str]:
    """The words of a caption between `<start>` and `<eos>`."""
    return [START, *words_of(text, "plain"), END]


def build_vocabulary(
    captions: Captions, min_count: int, max_size: int | None = None
) -> Vocabulary:
    """`<eos>`, the words of the training captions by falling frequency, `<unk>`, `<start>`."""
    texts = (text for name in captions.splits["train"] for text in captions.texts[name])
    counts = Counter(word for text in texts for word in words_of(text, "plain"))
    found = Vocabulary.of_words(
        counts, min_count=min_count, max_size=max_size, first=[END], last=[UNKNOWN, START]
    )
    if len(found) == 3:
        raise LangevinError(
            f"no word is left: min_count {min_count} and max_vocab {max_size or 'none'} cut all "
            f"words of the training captions; lower min_count or raise max_vocab"
        )
    return found
