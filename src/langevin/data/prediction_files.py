"""Answers into a file, beside all that stood in the one with the texts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import write_atomic

ENDINGS = (".csv", ".tsv", ".jsonl")
NUMBERS = ("probability", "std", "entropy", "mutual_information")
COLUMNS = ("predicted", *NUMBERS, "decision", "note")
"""What the answers add to each row."""


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a target that could not be written, or must not be, before the work is done."""
    if path.suffix.lower() not in ENDINGS:
        raise LangevinError(f"expected --out to end in {', '.join(ENDINGS)}, got {path.name!r}")
    if path.is_dir():
        raise LangevinError(f"{path} is a folder; choose another --out")
    if path.exists() and not overwrite:
        raise LangevinError(f"{path} exists; choose another --out or allow --overwrite")


def write_answers(
    path: Path, columns: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]
) -> None:
    """All columns of the input with the answers beside: CSV, TSV or JSON lines by the name."""
    rows = [row | answer_columns(answer) for row, answer in zip(columns, answers, strict=True)]
    ending = path.suffix.lower()
    if ending == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = [[row.get(name) for name in names] for row in rows]
        table: list[list[Any]] = [names, *cells]
        text = tsv_of(table) if ending == ".tsv" else csv_of(table)
    write_atomic(path, text.encode())


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


def answer_columns(answer: dict[str, Any]) -> dict[str, Any]:
    """What one answer adds to its row."""
    note = "empty" if answer["empty"] else "cut" if answer["cut"] else ""
    numbers = {name: round(answer[name], 6) for name in NUMBERS}
    decision = answer["decision"] or ""
    return {"predicted": answer["label"], **numbers, "decision": decision, "note": note}
