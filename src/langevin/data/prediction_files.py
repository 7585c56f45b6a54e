"""Answers into a file, beside all that stood in the one with the texts, block after block."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import LangevinError
from ..files import whole_file

ENDINGS = (".csv", ".tsv", ".jsonl")
COLUMNS = (
    "predicted", "probability", "std", "entropy", "mutual_information", "decision", "note",
)  # fmt: skip
"""What the answers add to each row."""


def refuse_answers_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a target that could not be written, or must not be, before the work is done."""
    if path.suffix.lower() not in ENDINGS:
        raise LangevinError(f"expected --out to end in {', '.join(ENDINGS)}, got {path.name!r}")
    if path.is_dir():
        raise LangevinError(f"{path} is a folder; choose another --out")
    if path.exists() and not overwrite:
        raise LangevinError(f"{path} exists; choose another --out or allow --overwrite")


class AnswerFile:
    """Rows as CSV, TSV or JSON lines. Of tables the columns stand first, and stay the same."""

    def __init__(self, file: BinaryIO, ending: str, columns: Sequence[str] | None = None) -> None:
        self.file, self.ending, self.columns = file, ending, columns
        self.begun = False

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """More rows. The columns are those of the first ones, unless they were told before."""
        if self.ending == ".jsonl":
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        else:
            columns = self.columns = self.columns or columns_in(rows)
            cells: list[Sequence[Any]] = [[row.get(name) for name in columns] for row in rows]
            table = cells if self.begun else [columns, *cells]
            text = tsv_of(table) if self.ending == ".tsv" else csv_of(table)
        self.begun = True
        self.file.write(text.encode())


@contextlib.contextmanager
def answer_file(path: Path, columns: Sequence[str] | None = None) -> Iterator[AnswerFile]:
    """A file of answers, which is there when all of them have been written."""
    with whole_file(path) as file:
        yield AnswerFile(file, path.suffix.lower(), columns)


def columns_in(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns that rows have, in the order in which they come up."""
    return list(dict.fromkeys(name for row in rows for name in row))


def tsv_of(table: Sequence[Sequence[Any]]) -> str:
    """Without quotes: a cell holds neither tabs nor line ends."""
    lines = (["" if value is None else " ".join(str(value).split()) for value in line]
             for line in table)
    return "".join("\t".join(line) + "\n" for line in lines)


def csv_of(table: Sequence[Sequence[Any]]) -> str:
    """With quotes around every cell of a line that has a carriage return, which would end it."""
    text = io.StringIO(newline="")
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for line in table:
        (quoted if any("\r" in str(value) for value in line) else plain).writerow(line)
    return text.getvalue()
