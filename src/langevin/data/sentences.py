"""Labelled sentences: the benchmarks by name, or a file of the user's."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from ..errors import LangevinError
from .catalogue import DATASETS, SENTENCES
from .tables import join_blocks, open_table, parse_blocks
from .text import Text

KNOWN = tuple(known.name for known in SENTENCES)
LABEL_NAMES = {known.name: known.labels for known in SENTENCES}
"""What the numbers 0, 1, … of the benchmark files mean."""


@dataclass(frozen=True)
class Sentences:
    """Texts and the label of each, as they stand in the file."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    sha256: str
    encoding: str = "utf-8"
    tokens: str = "space"
    """How such a file is cut into words."""

    @property
    def names(self) -> tuple[str, ...]:
        """The distinct labels: whole numbers by value, others by spelling."""
        distinct = set(self.labels)
        if all(label.removeprefix("-").isdecimal() for label in distinct):
            return tuple(sorted(distinct, key=lambda label: (int(label), label)))
        return tuple(sorted(distinct))

    @property
    def counts(self) -> dict[str, int]:
        """How many sentences each label has."""
        counted = Counter(self.labels)
        return {name: counted[name] for name in self.names}

    def __len__(self) -> int:
        return len(self.texts)


def read_corpus_of_sentences(
    name_or_path: str, text_column: str = "text", label_column: str = "label"
) -> dict[str, Sentences]:
    """{"all": …}, still to be split, or {"train": …, "test": …} where the set came split."""
    if name_or_path not in KNOWN:
        return {"all": read_sentences(Path(name_or_path), text_column, label_column)}
    known = DATASETS[name_or_path]
    read = {key: parse(known.read(key), file.name, text_column, label_column)
            for key, file in known.files.items()}
    return {key: replace(sentences, tokens="cleaned") for key, sentences in read.items()}


def read_sentences(
    path: Path, text_column: str = "text", label_column: str = "label"
) -> Sentences:
    """The labelled sentences of one file; its ending says which format, else `label text` lines."""
    return parse(open_table(path).read(), str(path), text_column, label_column)


def parse(raw: bytes, path: str, text_column: str, label_column: str) -> Sentences:
    """The contents of a file; each sentence must have a label."""
    blocks = parse_blocks(Text(raw), path, text_column, label_column, labelled=True)
    if (first := next(blocks, None)) is None:
        raise LangevinError(
            f"expected labelled sentences in {path}, found none; pass a file that has some"
        )
    rows = join_blocks(chain([first], blocks))
    labels = rows.labels or []
    if "" in labels:
        raise LangevinError(
            f"expected a label in column {label_column!r} of {path}, row {labels.index('') + 1} "
            f"has none; remove the row or give it one"
        )
    tokens = "words" if rows.free else "space"
    sha256 = hashlib.sha256(raw).hexdigest()
    return Sentences(tuple(rows.texts), tuple(labels), sha256, rows.encoding, tokens)
