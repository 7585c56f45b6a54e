"""Texts to be classified from a file, and the answers into another, beside all that stood in the first."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import write_atomic
from .sentences import cell, decode, kind_of, labelled_lines, lines_of, read_bytes, rows_of

ENDINGS = (".csv", ".tsv", ".jsonl")
COLUMNS = ("predicted", "probability", "std", "entropy", "mutual_information", "decision", "note")
"""What the answers add to each row."""


@dataclass(frozen=True)
class Rows:
    """The texts of a file, in order, with every column as it stood and the labels where there are some."""

    texts: list[str]
    kept: list[dict[str, Any]]
    labels: list[str] | None
    free: bool
    """Text as people write it, not cut into tokens before."""


def read_rows(
    path: Path, text_column: str, label_column: str | None, *, usual_label: str | None = None, labelled: bool = False,
    to_write: bool = False,
) -> Rows:
    """CSV, TSV and JSON lines by column; of any other file the lines, with `labelled` as `label text`.

    `label_column` must be there if it is given; otherwise `usual_label` is taken if it is there. Rows that are to be
    written with their answers may not have the columns of these.
    """
    text, _ = decode(read_bytes(path), str(path))
    if kind_of(str(path)) == "lines":
        if label_column is not None:
            raise LangevinError(f"expected a CSV, TSV or JSONL file for the column {label_column!r}, got lines in "
                                f"{path}; pass --labelled if they are 'label text'")
        rows = plain_lines(text, labelled)
    else:
        kept = [row for _, row in rows_of(text, str(path))]
        if label_column is None and usual_label is not None and kept and usual_label in kept[0]:
            label_column = usual_label
        texts = [cell(row, text_column, str(path)).strip() for row in kept]
        labels = [cell(row, label_column, str(path)).strip() for row in kept] if label_column else None
        rows = Rows(texts, kept, labels, free=True)
    if not rows.texts:
        raise LangevinError(f"expected texts in {path}, found none; pass a file that has some")
    taken = sorted(set(COLUMNS) & {name for row in rows.kept for name in row})
    if taken and to_write:
        raise LangevinError(f"{path} has a column {taken[0]!r} already, which the answers would replace; rename it")
    return rows


def plain_lines(text: str, labelled: bool) -> Rows:
    if labelled:
        pairs = list(labelled_lines(text))
        kept: list[dict[str, Any]] = [{"label": label, "text": own} for own, label in pairs]
        return Rows([own for own, _ in pairs], kept, [label for _, label in pairs], free=False)
    lines = [line.strip() for line in lines_of(text)] if text else []
    return Rows(lines, [{"text": line} for line in lines], None, free=True)


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a target that could not be written, or must not be, before the work is done."""
    if path.suffix.lower() not in ENDINGS:
        raise LangevinError(f"expected --out to end in {', '.join(ENDINGS)}, got {path.name!r}")
    if path.is_dir():
        raise LangevinError(f"{path} is a folder; choose another --out")
    if path.exists() and not overwrite:
        raise LangevinError(f"{path} exists; choose another --out or allow --overwrite")


def write_answers(path: Path, kept: Sequence[dict[str, Any]], answered: Sequence[dict[str, Any]]) -> None:
    """All columns of the input with the answers beside, as CSV, TSV or JSON lines by the ending of the name."""
    rows = [row | told(answer) for row, answer in zip(kept, answered, strict=True)]
    if path.suffix.lower() == ".jsonl":
        write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    made = io.StringIO(newline="")
    if path.suffix.lower() == ".tsv":  # no quoting there: a cell holds neither tabs nor line ends
        lines = [columns, *([str(row.get(name, "") if row.get(name) is not None else "") for name in columns]
                            for row in rows)]
        made.writelines("\t".join(" ".join(value.split()) for value in line) + "\n" for line in lines)
    else:
        plain = csv.writer(made, lineterminator="\n")
        quoted = csv.writer(made, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a bare \r would end the line unquoted
        table: list[list[Any]] = [columns, *([row.get(name) for name in columns] for row in rows)]
        for line in table:
            (quoted if any("\r" in str(value) for value in line) else plain).writerow(line)
    write_atomic(path, made.getvalue().encode())


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """The columns of one answer."""
    note = "empty" if answer["empty"] else "cut" if answer["cut"] else ""
    numbers = {name: round(answer[name], 6) for name in ("probability", "std", "entropy", "mutual_information")}
    return {"predicted": answer["label"], **numbers, "decision": answer["decision"] or "", "note": note}
