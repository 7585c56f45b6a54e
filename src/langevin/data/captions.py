"""Captions of images in three splits: Flickr's token lines with image lists, or Karpathy's JSON.

Words are made as in Karpathy & Fei-Fei (2015): lower case, every character that is neither a letter nor a digit is
discarded ("t-shirt" → "tshirt", "." vanishes), words seen fewer than `min_count` times in training become `<unk>`. With
5 this leaves 2,537 words of Flickr8k; they count 2,538, the end included. Each caption begins with `<start>` and ends
with `<eos>`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import A_FOLDER, no_file
from .catalogue import DATASETS
from .corpora import read_text
from .features import names_in
from .known_images import TOKENS
from .vocabulary import END, UNKNOWN, Vocabulary

START = "<start>"
SPLITS = ("train", "valid", "test")
LISTS = {"train": ("*train*.txt",), "valid": ("*dev*.txt", "*val*.txt"), "test": ("*test*.txt",)}
"""How the image lists of a token file are named, beside it."""
WORD, NEITHER = re.compile(r"[^\W_]"), re.compile(r"[^\w\s]|_")
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


def words_of(text: str) -> list[str]:
    """Lower-cased words of letters and digits only.

    >>> words_of("A man 's T-shirt , red .")
    ['a', 'man', 's', 'tshirt', 'red']
    """
    return NEITHER.sub("", text.lower()).split()


def read_captions(path: Path) -> Captions:
    """A JSON file of Karpathy's, a token file with its image lists beside it, or a folder that holds either."""
    problem = no_file(path)
    if problem == A_FOLDER:
        path = caption_file_in(path)
    elif problem:
        raise LangevinError(
            f"expected captions at {path}, which is {problem}; pass a caption file, its folder, or one of "
            f"{', '.join(CAPTIONED)}"
        )
    raw = read_text(path)
    if path.suffix == ".json":
        return checked(path, *parse_karpathy(path, raw), [raw])
    lists = {split: find_list(path, split) for split in SPLITS}
    return from_token_lines(path, raw, {split: (own, read_text(own)) for split, own in lists.items()})


def from_token_lines(path: Path, raw: bytes, lists: dict[str, tuple[Path, bytes]]) -> Captions:
    """The contents of a token file and of its image lists."""
    names = {split: names_in(content, str(own)) for split, (own, content) in lists.items()}
    return checked(path, parse_token_lines(path, raw), names, [raw, *(content for _, content in lists.values())])


def first_of(folder: Path, patterns: Iterable[str]) -> Path | None:
    return next((found for pattern in patterns for found in sorted(folder.glob(pattern))), None)


def caption_file_in(folder: Path) -> Path:
    """The one caption file of a folder."""
    if found := first_of(folder, ("*.json", *TOKENS)):
        return found
    raise LangevinError(
        f"expected captions in {folder} (Karpathy's dataset_*.json, or *.token.txt with three image lists), found none"
    )


def find_list(path: Path, split: str) -> Path:
    """The image list of a split, beside the token file."""
    found = [p for pattern in LISTS[split] for p in sorted(path.parent.glob(pattern)) if p != path]
    if not found:
        wanted = " or ".join(LISTS[split])
        raise LangevinError(
            f"expected the image list of the {split} split beside {path}, named like {wanted}; put it there (one image "
            f"name a line), or use Karpathy's JSON, which carries its splits"
        )
    return found[0]


def parse_token_lines(path: Path, raw: bytes) -> dict[str, list[str]]:
    """Lines `name.jpg#0<TAB>caption` → captions of each image."""
    texts: dict[str, list[str]] = {}
    for number, line in enumerate(decoded(path, raw).splitlines(), start=1):
        key, tab, text = line.partition("\t")
        name, hash_sign, _ = key.rpartition("#")
        if not (tab and hash_sign and name):
            if not line.strip():
                continue
            raise LangevinError(
                f"expected 'image.jpg#0<TAB>caption' in line {number} of {path}, got {line[:60]!r}; mend that line"
            )
        texts.setdefault(name, []).append(text)
    return texts


def parse_karpathy(path: Path, raw: bytes) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """`{"images": [{"filename", "split", "sentences": [{"raw" or "tokens"}]}]}` → captions and splits."""
    texts: dict[str, list[str]] = {}
    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    try:
        for image in json.loads(decoded(path, raw))["images"]:
            texts[image["filename"]] = [text_of(sentence) for sentence in image["sentences"]]
            if image["split"] in KARPATHY:
                splits[KARPATHY[image["split"]]].append(image["filename"])
    except (ValueError, KeyError, TypeError) as error:
        raise LangevinError(
            f"expected Karpathy's JSON in {path} (images with filename, split and sentences), it cannot be read: "
            f"{error!r}; use his dataset files or the token format"
        ) from None
    return texts, splits


def text_of(sentence: dict[str, Any]) -> str:
    """As it was written, or the words it was cut into."""
    return str(sentence["raw"]) if "raw" in sentence else " ".join(sentence["tokens"])


def decoded(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LangevinError(
            f"expected UTF-8 in {path}, got the byte {raw[error.start]:#04x} at {error.start}; convert the file"
        ) from None


def checked(
    path: Path, texts: dict[str, list[str]], splits: dict[str, list[str]], contents: Iterable[bytes]
) -> Captions:
    """The same, after making sure that every split has images of its own, and each of them captions with words."""
    seen: dict[str, str] = {}
    for split, names in splits.items():
        if not names:
            raise LangevinError(f"the {split} split of {path} has no images; every split needs some")
        if bare := [name for name in names if not any(WORD.search(text) for text in texts.get(name, []))]:
            raise LangevinError(
                f"{len(bare)} of {len(names)} images of the {split} split have no caption in {path}, first "
                f"{bare[0]!r}; add captions or take them off the list"
            )
        if len(set(names)) < len(names):
            twice = next(name for number, name in enumerate(names) if name in names[:number])
            raise LangevinError(f"{twice!r} is listed twice in the {split} split of {path}; list each image once")
        if shared := next((name for name in names if name in seen), None):
            raise LangevinError(
                f"expected splits of different images in {path}, got {shared!r} in both {seen[shared]} and {split}; "
                f"take it off one of the lists"
            )
        seen |= dict.fromkeys(names, split)
    return Captions(texts, splits, hashlib.sha256(b"".join(contents)).hexdigest())


def build_vocabulary(captions: Captions, min_count: int, max_size: int | None = None) -> Vocabulary:
    """The words of the training captions and `<eos>` by falling frequency, then `<unk>`, then `<start>`."""
    lines = [" ".join(words_of(text)) for name in captions.splits["train"] for text in captions.texts[name]]
    found = Vocabulary.build("\n".join(line for line in lines if line).encode(), "word", min_count=min_count)
    room = None if max_size is None else max_size - 3
    words = [token for token in found.tokens if token not in (END, UNKNOWN)][:room]
    if not words:
        raise LangevinError(
            f"no word is left: min_count {min_count} and max_vocab {max_size or 'none'} cut all words of the training "
            f"captions; lower min_count or raise max_vocab"
        )
    return Vocabulary("word", [END, *words, UNKNOWN, START])


def encode(vocabulary: Vocabulary, text: str) -> list[int]:
    """Token numbers of a caption, from `<start>` to `<eos>`."""
    numbers, unknown = vocabulary.numbers, vocabulary.numbers[UNKNOWN]
    return [numbers[START], *(numbers.get(word, unknown) for word in words_of(text)), numbers[END]]
