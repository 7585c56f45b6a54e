"""Files of texts, with labels or without: CSV, TSV, JSON lines, plain lines; whatever encoding.

Files are read block by block, so that they may be longer than memory. Empty texts are kept.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import LangevinError
from ..files import open_regular
from .catalogue import SENTENCES
from .encoding import Encoding, find_encoding
from .formats import Row, cell_rows, json_rows, kind_of_table, labelled_lines, lines_of
from .text import Text

LONGEST_FIELD = 2**31 - 1
"""Of a CSV cell; Python's own limit of 131,072 is less than some texts."""
BLOCK = 1000
"""Rows that are read at once."""


@dataclass(frozen=True)
class Rows:
    """The texts of a file, in order, with every column as it stood, and labels if it has some."""

    texts: list[str]
    columns: list[Row]
    labels: list[str] | None
    free: bool
    """Text as people write it, not cut into tokens before."""
    encoding: str = "utf-8"


def read_rows(
    path: Path, text_column: str = "text", label_column: str | None = None, *,
    usual_label: str | None = None, labelled: bool = False, reserved: Collection[str] = (),
) -> Rows:
    """All rows of one file; see `read_blocks`."""
    return join_blocks(read_blocks(
        path, text_column, label_column, usual_label=usual_label, labelled=labelled,
        reserved=reserved,
    ))


def read_blocks(
    path: Path, text_column: str = "text", label_column: str | None = None, *,
    usual_label: str | None = None, labelled: bool = False, reserved: Collection[str] = (),
) -> Iterator[Rows]:
    """The rows of one file, at most 1,000 at a time; a file without texts is refused.

    Rows that are to be written with more columns may not have the `reserved` ones already. What is
    wrong with a row is said when it is reached.
    """
    if kind_of_table(str(path)) == "lines" and label_column is not None:
        raise LangevinError(
            f"expected a CSV, TSV or JSONL file for the column {label_column!r}, got lines in "
            f"{path}; pass --labelled if they are 'label text'"
        )
    blocks = parse_blocks(
        open_table(path), str(path), text_column, label_column, usual_label=usual_label,
        labelled=labelled,
    )
    empty = True
    for block in blocks:
        taken = sorted({*reserved} & {name for row in block.columns for name in row})
        if taken:
            raise LangevinError(
                f"{path} has a column {taken[0]!r} already, which the answers would replace; "
                f"rename it"
            )
        yield block
        empty = False
    if empty:
        raise LangevinError(f"expected texts in {path}, found none; pass a file that has some")


def join_blocks(blocks: Iterator[Rows]) -> Rows:
    """Blocks of one file, of which there is at least one, as if they had been read at once."""
    first = next(blocks)
    for block in blocks:
        first.texts.extend(block.texts)
        first.columns.extend(block.columns)
        if first.labels is not None and block.labels is not None:
            first.labels.extend(block.labels)
    return first


def open_table(path: Path) -> Text:
    known = ", ".join(known.name for known in SENTENCES)
    instead = f"pass a CSV, TSV, JSONL or 'label text' file or one of {known}"
    with open_regular(path, what="a file of labelled sentences", instead=instead):
        return Text(path)


def parse_blocks(
    text: Text, path: str, text_column: str, label_column: str | None, *,
    usual_label: str | None = None, labelled: bool = False,
) -> Iterator[Rows]:
    """CSV, TSV and JSON lines by column; of other files the lines, as `label text` if `labelled`.

    `label_column` must be there if it is given; else `usual_label` is taken if it is there.
    """
    encoding, kind = find_encoding(text, path), kind_of_table(path)
    if kind == "lines":
        yield from line_blocks(text, encoding, labelled=labelled)
        return
    rows = json_rows(text, encoding, path) if kind == "json" else cell_rows(text, encoding, path)
    first = True
    while block := next_block(rows):
        if first and label_column is None and usual_label in block[0]:
            label_column = usual_label
        first, texts, labels = False, list[str](), list[str]()
        for row in block:  # row by row: the first thing wrong is what is said
            if label_column is not None:
                labels.append(value_in(row, label_column, path).strip())
            texts.append(value_in(row, text_column, path).strip())
        yield Rows(texts, block, None if label_column is None else labels, True, encoding.name)


def next_block(rows: Iterator[Row]) -> list[Row]:
    """The next rows, read under the limit of our own for cells, which is one for the process."""
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        return list(itertools.islice(rows, BLOCK))
    finally:
        csv.field_size_limit(before)


def line_blocks(text: Text, encoding: Encoding, *, labelled: bool) -> Iterator[Rows]:
    """Lines as texts, or as `label text`, of which blank lines are skipped."""
    plain: Iterator[Row] = ({"text": line.strip()} for line in lines_of(text, encoding))
    rows = labelled_lines(text, encoding) if labelled else plain
    while block := list(itertools.islice(rows, BLOCK)):
        labels = [row["label"] for row in block] if labelled else None
        yield Rows([row["text"] for row in block], block, labels, not labelled, encoding.name)


def value_in(row: Row, column: str, path: str) -> str:
    """One value as text; None is empty. A column that is not there is refused, with those there."""
    if column not in row:
        names = ", ".join(repr(name) for name in row if name is not None) or "none"
        raise LangevinError(
            f"expected a column {column!r} in {path}, the columns are {names}; "
            f"name the right ones with text_column and label_column"
        )
    value = row[column]
    if isinstance(value, dict | list):
        raise LangevinError(
            f"expected a text or a number in column {column!r} of {path}, got {str(value)[:60]}; "
            f"name another column or write it as text"
        )
    missing = value is None or value != value  # some tools write NaN
    return "" if missing else str(value)


def refuse_half_signs(text: str, where: str) -> None:
    """Bytes that are not UTF-8 reach Python as halves of signs, which nothing can write."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        before = text[:problem.start][-20:]
        raise LangevinError(
            f"expected {where} in UTF-8, got something else after {before!r}; mend it"
        ) from None
