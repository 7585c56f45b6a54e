"""Captions of images in three splits, from a data set by name or a file of the user's.

Words are made as in Karpathy & Fei-Fei (2015): lower case, every character that is neither a letter
nor a digit is discarded ("t-shirt" → "tshirt", "." vanishes), words seen fewer than `min_count`
times in training become `<unk>`. With 5 this leaves 2,537 words of Flickr8k; they count 2,538, the
end included. Each caption begins with `<start>` and ends with `<eos>`.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import LangevinError
from ..files import A_FOLDER, expect_file, no_file
from .caption_files import CaptionFile, parse_captions, parse_token_lines, shape_of
from .caption_splits import Shares, complete_splits, describe_splits
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
CAPTIONED = tuple(name for name, known in DATASETS.items() if "captions" in known.files)
"""The data sets that are captioned images."""
log = logging.getLogger("langevin")


@dataclass(frozen=True)
class Captions:
    """What people wrote about each image, and which images belong to which split."""

    texts: dict[str, list[str]]
    """Image name → its captions as they were written: the references of the metrics."""
    splits: dict[str, list[str]]
    """Split → image names."""
    sha256: str
    bare: tuple[str, ...] = ()
    """Images without a caption that has words, which were left out."""
    made: tuple[str, ...] = ()
    """Splits that were held out, as the file does not name them."""

    def describe(self) -> str:
        """How many images each split has, and by whose choice."""
        how = ", as the file says"
        if self.made:
            how = f"; {' and '.join(self.made)} held out by a hash of the image's name"
        return describe_splits(self.splits) + how


def open_captions(
    corpus: str, shares: Shares = Shares(), *, allow_bare: bool = False,  # noqa: B008  # frozen
) -> Captions:
    """A data set by name, or a caption file or folder."""
    known = DATASETS.get(corpus)
    if known is None:
        return read_captions(Path(corpus), shares, allow_bare=allow_bare)
    if "captions" not in known.files:
        raise LangevinError(
            f"{corpus} has no captions; use {', '.join(CAPTIONED)} or a caption file"
        )
    return captions_of(known)


def open_features(corpus: str, features: str | None) -> ImageFeatures:
    """Those of a file, of a data set by name, or the only ones beside a caption file."""
    known = DATASETS.get(corpus)
    if features is None and known is not None:
        return features_of(known)
    return read_features(features_beside(Path(corpus), features))


def captions_of(known: DataSet) -> Captions:
    """As the catalogue names them, or token lines with lists where people may bring their own."""
    path = known.folder / known.files["captions"].name
    others = None if is_demanded(known, "captions") else first_of(known.folder, TOKENS)
    if others is not None:
        return read_captions(others)
    raw = known.read("captions")
    if path.suffix == ".json":
        return split_captions(path, parse_captions(path, raw), [raw])
    lists = {s: (known.folder / known.files[s].name, known.read(s)) for s in SPLITS}
    return from_token_lines(path, raw, lists)


def features_of(known: DataSet) -> ImageFeatures:
    """As the catalogue names them, or the only ones there where people may bring their own."""
    if not is_demanded(known, "features") and feature_files(known.folder):
        return read_features(features_beside(known.folder, None))
    source = known.folder / known.files["features"].name
    return features_from_bytes(known.read("features"), known.read("names"), str(source))


def is_demanded(known: DataSet, key: str) -> bool:
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
            f"{len(found)}; name it by --features, or a folder of pictures by --images"
        )
    return found[0]


def feature_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)


def read_captions(
    path: Path, shares: Shares = Shares(), *, allow_bare: bool = False,  # noqa: B008  # frozen
) -> Captions:
    """A file of captions of any kind, or a folder with one; token lines have lists beside them.

    Where the file names no split, or no list is there, images are held out.
    """
    if no_file(path) == A_FOLDER:
        path = caption_file_in(path)
    known = ", ".join(CAPTIONED)
    expect_file(path, "captions at", f"pass a caption file, its folder, or one of {known}")
    raw = open_text(path).read()
    if shape_of(path, raw) == "lines" and any(lists_of(path, split) for split in SPLITS):
        lists = {split: find_list(path, split) for split in SPLITS}
        listed = {split: (file, open_text(file).read()) for split, file in lists.items()}
        return from_token_lines(path, raw, listed)
    return split_captions(path, parse_captions(path, raw), [raw], shares, allow_bare=allow_bare)


def from_token_lines(path: Path, raw: bytes, lists: dict[str, tuple[Path, bytes]]) -> Captions:
    """The contents of a token file and of its image lists."""
    found = parse_token_lines(path, raw)
    for split, (source, content) in lists.items():
        found.splits[split] = names_in(content, str(source))
    return split_captions(path, found, [raw, *(content for _, content in lists.values())])


def first_of(folder: Path, patterns: Iterable[str]) -> Path | None:
    found = (path for pattern in patterns for path in sorted(folder.glob(pattern)))
    return next(found, None)


def caption_file_in(folder: Path) -> Path:
    """The one caption file of a folder."""
    if found := first_of(folder, ("*.json", *TOKENS)):
        return found
    raise LangevinError(
        f"expected captions in {folder} (one *.json, or *.token.txt with three image lists), found "
        f"none; name the file"
    )


def lists_of(path: Path, split: str) -> list[Path]:
    """The image lists of a split that lie beside a token file."""
    return [p for pattern in LISTS[split] for p in sorted(path.parent.glob(pattern)) if p != path]


def find_list(path: Path, split: str) -> Path:
    """The image list of a split, beside the token file."""
    if found := lists_of(path, split):
        return found[0]
    wanted = " or ".join(LISTS[split])
    raise LangevinError(
        f"expected the image list of the {split} split beside {path}, named like {wanted}; put "
        f"it there (one image name a line), or use Karpathy's JSON, which carries its splits"
    )


def split_captions(
    path: Path, found: CaptionFile, contents: Iterable[bytes],
    shares: Shares = Shares(), *, allow_bare: bool = False,  # noqa: B008  # frozen
) -> Captions:
    """Captions in three splits of different images, each image with captions that have words.

    `contents` are those of all files that were read.
    """
    if not found.texts:
        raise LangevinError(f"expected captions in {path}, found none; add some")
    texts, named, bare = found.texts, found.splits, list[str]()
    if allow_bare:
        bare = [name for name in texts if not can_be_read(texts[name])]
        out = set(bare)
        texts = {name: captions for name, captions in texts.items() if name not in out}
        named = {split: [n for n in names if n not in out] for split, names in named.items()}
    named = {split: names for split, names in named.items() if names or split == "train"}
    made = [split for split in ("test", "valid") if split not in named]
    refuse_bad_splits(path, texts, named or {"train": list(texts)})
    splits = complete_splits(texts, named, shares, str(path))
    digest = hashlib.sha256(b"".join(contents))
    if made or bare:
        digest.update(repr((sorted(splits.items()), bare)).encode())
    return Captions(texts, splits, digest.hexdigest(), tuple(bare), tuple(made))


def refuse_bad_splits(
    path: Path, texts: dict[str, list[str]], splits: dict[str, list[str]]
) -> None:
    """Every split has images of its own, each once, with captions that have words."""
    seen: dict[str, str] = {}
    for split, names in splits.items():
        if not names:
            raise LangevinError(
                f"the {split} split of {path} has no images; every split needs some"
            )
        if bare := [name for name in names if not can_be_read(texts.get(name, []))]:
            raise LangevinError(
                f"{len(bare)} of {len(names)} images of the {split} split have no caption in "
                f"{path}, first {bare[0]!r}; add captions, or leave them out by --skip-damaged"
            )
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise LangevinError(
                f"{twice!r} is listed twice in the {split} split of {path}; list each image once"
            )
        if shared := next((name for name in names if name in seen), None):
            raise LangevinError(
                f"expected splits of different images in {path}, got {shared!r} in both "
                f"{seen[shared]} and {split}; take it off one of the lists"
            )
        seen |= dict.fromkeys(names, split)


def can_be_read(captions: Iterable[str]) -> bool:
    return any(WORD.search(text) for text in captions)


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
