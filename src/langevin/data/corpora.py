"""Where texts come from: the embedded War and Peace, a known data set, or a file of the user's."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

from ..errors import LangevinError
from ..files import open_regular, read_bytes
from .catalogue import DATASETS
from .text import Text

WAR_AND_PEACE = "war_and_peace"
WAR_AND_PEACE_SHA256 = "fb66ba999dafe24017cdd59e04c56d385a9c8466993d374fd4c6f08b2142985e"
SPLITS = ("train", "valid", "test")
TEXTS = ("ptb",)
"""The data sets that are running text."""

Corpus = dict[str, Text]
"""Either {"text": …}, still to be split, or the three splits as they were published."""


def read_corpus(name_or_path: str) -> Corpus:
    """The embedded corpus or a data set by its name, or the file at this path."""
    if name_or_path == WAR_AND_PEACE:
        return {"text": Text(read_war_and_peace())}
    if name_or_path in TEXTS:
        return {split: Text(DATASETS[name_or_path].read(split)) for split in SPLITS}
    if name_or_path in DATASETS and not Path(name_or_path).exists():
        known = ", ".join([WAR_AND_PEACE, *TEXTS])
        raise LangevinError(
            f"expected a text for a language model, got the data set {name_or_path}; "
            f"pass a file or one of {known}"
        )
    return {"text": open_text(Path(name_or_path))}


def open_text(path: Path) -> Text:
    """A text file, checked to be usable."""
    known = ", ".join([WAR_AND_PEACE, *TEXTS])
    with open_regular(path, what="a text file", instead=f"pass a file or one of {known}"):
        text, blank = Text(path), True
    for chunk in text.chunks():
        blank = blank and not chunk.strip()
        if b"\0" in chunk:
            raise LangevinError(
                f"expected text in {path}, found zero bytes as in a binary file; pass a text file"
            )
    if blank:
        raise LangevinError(
            f"expected text in {path}, it is empty; pass a file with text in it"
        )
    return text


def read_war_and_peace() -> bytes:
    """Tolstoy's novel as char-rnn distributed it, BOM and CR LF included: 87 distinct bytes."""
    raw = lzma.decompress(read_bytes(Path(__file__).with_name("war_and_peace.txt.xz")))
    if hashlib.sha256(raw).hexdigest() != WAR_AND_PEACE_SHA256:
        raise LangevinError(
            "the embedded War and Peace is damaged (its hash differs); install langevin again"
        )
    return raw


def corpus_sha256(corpus: Corpus) -> str:
    """Of all the bytes, split after split."""
    found = hashlib.sha256()
    for text in corpus.values():
        for chunk in text.chunks():
            found.update(chunk)
    return found.hexdigest()
