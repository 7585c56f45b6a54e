"""Where texts come from: the embedded War and Peace, a known data set, or a file of the user's."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

from ..errors import LangevinError
from ..files import read_bytes
from .catalogue import DATASETS

WAR_AND_PEACE = "war_and_peace"
WAR_AND_PEACE_SHA256 = "fb66ba999dafe24017cdd59e04c56d385a9c8466993d374fd4c6f08b2142985e"
SPLITS = ("train", "valid", "test")
TEXTS = ("ptb",)
"""The data sets that are running text."""

Corpus = dict[str, bytes]
"""Either {"text": …}, still to be split, or the three splits as they were published."""


def read_corpus(name_or_path: str) -> Corpus:
    """The embedded corpus or a data set by its name, or the file at this path."""
    if name_or_path == WAR_AND_PEACE:
        return {"text": read_war_and_peace()}
    if name_or_path in TEXTS:
        return {split: DATASETS[name_or_path].read(split) for split in SPLITS}
    if name_or_path in DATASETS and not Path(name_or_path).exists():
        known = ", ".join([WAR_AND_PEACE, *TEXTS])
        raise LangevinError(
            f"expected a text for a language model, got the data set {name_or_path}; "
            f"pass a file or one of {known}"
        )
    return {"text": read_text(Path(name_or_path))}


def read_text(path: Path) -> bytes:
    """A text file, checked to be usable."""
    known = ", ".join([WAR_AND_PEACE, *TEXTS])
    raw = read_bytes(path, what="a text file", instead=f"pass a file or one of {known}")
    if not raw.strip():
        raise LangevinError(f"expected text in {path}, it is empty; pass a file with text in it")
    if b"\0" in raw:
        raise LangevinError(
            f"expected text in {path}, found zero bytes as in a binary file; pass a text file"
        )
    return raw


def read_war_and_peace() -> bytes:
    """Tolstoy's novel as char-rnn distributed it, BOM and CR LF included: 87 distinct bytes."""
    raw = lzma.decompress(read_bytes(Path(__file__).with_name("war_and_peace.txt.xz")))
    if hashlib.sha256(raw).hexdigest() != WAR_AND_PEACE_SHA256:
        raise LangevinError(
            "the embedded War and Peace is damaged (its hash differs); install langevin again"
        )
    return raw


def corpus_sha256(corpus: Corpus) -> str:
    return hashlib.sha256(b"".join(corpus.values())).hexdigest()
