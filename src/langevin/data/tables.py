"""Files of texts, with labels or without: CSV, TSV, JSON lines, plain lines; whatever encoding.

A tab and a line end always separate in TSV, unless all of it reads as cells in quotes. Empty texts
are kept.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import read_bytes
from .catalogue import SENTENCES

LONGEST_FIELD = 2**31 - 1
"""Of a CSV cell; Python's own limit of 131,072 is less than some texts."""

log = logging.getLogger("langevin")


@dataclass(frozen=True)
class Rows:
    """The texts of a file, in order, with every column as it stood, and labels if it has some."""

    texts: list[str]
    columns: list[dict[str, Any]]
    labels: list[str] | None
    free: bool
    """Text as people write it, not cut into tokens before."""
    encoding: str = "utf-8"


def read_rows(
    path: Path, text_column: str = "text", label_column: str | None = None, *,
    usual_label: str | None = None, labelled: bool = False, reserved: Collection[str] = (),
) -> Rows:
    """The rows of one file; one without texts is refused.

    Rows that are to be written with more columns may not have the `reserved` ones already.
    """
    raw = read_table(path)
    if kind_of(str(path)) == "lines" and label_column is not None:
        raise LangevinError(
            f"expected a CSV, TSV or JSONL file for the column {label_column!r}, got lines in "
            f"{path}; pass --labelled if they are 'label text'"
        )
    rows = parse_rows(
        raw, str(path), text_column, label_column, usual_label=usual_label, labelled=labelled
    )
    if not rows.texts:
        raise LangevinError(f"expected texts in {path}, found none; pass a file that has some")
    taken = sorted({*reserved} & {name for row in rows.columns for name in row})
    if taken:
        raise LangevinError(
            f"{path} has a column {taken[0]!r} already, which the answers would replace; rename it"
        )
    return rows


def read_table(path: Path) -> bytes:
    known = ", ".join(known.name for known in SENTENCES)
    instead = f"pass a CSV, TSV, JSONL or 'label text' file or one of {known}"
    return read_bytes(path, what="a file of labelled sentences", instead=instead)


def parse_rows(
    raw: bytes, path: str, text_column: str, label_column: str | None, *,
    usual_label: str | None = None, labelled: bool = False,
) -> Rows:
    """CSV, TSV and JSON lines by column; of other files the lines, as `label text` if `labelled`.

    `label_column` must be there if it is given; else `usual_label` is taken if it is there.
    """
    text, encoding = decode(raw, path)
    if kind_of(path) != "lines":
        texts, labels, rows = list[str](), list[str](), list[dict[str, Any]]()
        for row in rows_of(text, path):
            if label_column is None and not rows and usual_label in row:
                label_column = usual_label
            if label_column is not None:
                labels.append(cell(row, label_column, path).strip())
            texts.append(cell(row, text_column, path).strip())
            rows.append(row)
        return Rows(texts, rows, None if label_column is None else labels, True, encoding)
    if not labelled:
        lines = [line.strip() for line in lines_of(text)] if text else []
        return Rows(lines, [{"text": line} for line in lines], None, True, encoding)
    pairs = [{"label": label, "text": text} for text, label in labelled_lines(text)]
    texts, labels = ([pair[name] for pair in pairs] for name in ("text", "label"))
    return Rows(texts, pairs, labels, False, encoding)


def kind_of(path: str) -> str:
    ending = Path(path).suffix.lower()
    if ending in (".csv", ".tsv"):
        return ending[1:]
    return "json" if ending in (".jsonl", ".ndjson", ".json") else "lines"


def labelled_lines(text: str) -> Iterator[tuple[str, str]]:
    """`label text`: the label stands before the first white space; blank lines are skipped."""
    for line in lines_of(text):
        if line.strip():
            label, _, rest = line.strip().replace("\t", " ", 1).partition(" ")
            yield rest.strip(), label


def rows_of(text: str, path: str) -> Iterator[dict[str, Any]]:
    """The rows of a CSV, TSV or JSON file by column; a column that a row lacks is None.

    Cells beyond the columns of the first line and quotes that are not closed are refused: text
    would be lost.
    """
    kind = kind_of(path)
    if kind == "json":
        yield from json_rows(text, path)
        return
    before, last = csv.field_size_limit(LONGEST_FIELD), 0
    try:
        reader = csv.reader(io.StringIO(text, newline=""), **dialect_of(text, kind))
        columns = columns_of(next(filter(None, reader), []), path)
        last = reader.line_num
        for cells in reader:
            last = reader.line_num
            if not cells and len(columns) != 1:
                continue  # a blank line; where there is one column, an empty cell of it
            if len(cells) > len(columns):
                how = ("take the tabs out of its text" if kind == "tsv"
                       else "put the text that has separators in quotes")
                raise LangevinError(
                    f"line {last} of {path} has more cells than the first line has columns; {how}"
                )
            yield dict(itertools.zip_longest(columns, cells or [""]))
    except csv.Error as error:
        raise LangevinError(
            f"{path} is not valid {kind.upper()} after line {last}: {error}; mend its quotes"
        ) from None
    finally:
        csv.field_size_limit(before)


def dialect_of(text: str, kind: str) -> dict[str, Any]:
    """CSV with commas, or with semicolons where the first line has no comma.

    TSV with quotes as signs of the text; or with quotes around cells, as spreadsheets write them
    where a text has a quote or a line end: if all of a TSV can be read so, its rows are then of one
    length, two or more, and no cell has a tab, as it would if a quotation that goes on over several
    lines were taken for one cell.
    """
    if kind == "csv":
        first = text.lstrip().splitlines()[0] if text.strip() else ""
        return {"delimiter": ";" if ";" in first and "," not in first else ",", "strict": True}
    quoted: dict[str, Any] = {"delimiter": "\t", "strict": True}
    try:
        rows = list(filter(None, csv.reader(io.StringIO(text, newline=""), **quoted)))
    except csv.Error:
        rows = []
    alike = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    if alike and not any("\t" in cell for row in rows for cell in row):
        return quoted
    return {"delimiter": "\t", "quoting": csv.QUOTE_NONE}


def columns_of(first: list[str], path: str) -> list[str]:
    """The names in the first line; of two that are equal one would be lost."""
    first = [name.strip() for name in first]
    twice = [name for name, count in Counter(first).items() if count > 1 and name]
    if twice:
        raise LangevinError(
            f"expected columns of different names in {path}, got {twice[0]!r} more than once; "
            f"rename one of them"
        )
    return first


def json_rows(text: str, path: str) -> Iterator[dict[str, Any]]:
    """One object a line, or one list of objects."""
    listed = text.lstrip().startswith("[")
    for place, part in enumerate([text] if listed else lines_of(text), 1):
        if not part.strip():
            continue
        where = path if listed else f"line {place} of {path}"
        try:
            read = json.loads(part)
            rows = read if listed else [read]
            if "\\u" in part:  # may be half of a pair, which no file can hold
                json.dumps(rows, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise LangevinError(
                f"expected text in {where}, got half of a surrogate pair (a \\u escape from "
                f"d800 to dfff without its other half); mend or remove it"
            ) from None
        except ValueError as error:
            raise LangevinError(
                f"{where} is not valid JSON: {error}; expected one object a line"
            ) from None
        except RecursionError:
            raise LangevinError(
                f"{where} is nested too deep to be read; expected one object a line"
            ) from None
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                at = f"as number {number}" if listed else f"in line {place}"
                raise LangevinError(
                    f"expected an object in each line of {path}, got {str(row)[:60]!r} {at}"
                )
            yield row


def cell(row: dict[str, Any], column: str, path: str) -> str:
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


def lines_of(text: str) -> list[str]:
    """Lines by line feeds alone, or by carriage returns where there are no others.

    Texts may hold other signs that Python takes for line ends.
    """
    ended = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    return ended.removesuffix("\n").split("\n")


def decode(raw: bytes, path: str) -> tuple[str, str]:
    """The text and its encoding, said when it is not UTF-8.

    A byte-order mark decides; then UTF-8; then UTF-16 where every other byte is mostly zero; then
    UTF-8 with a few broken bytes; then Windows-1252, and Latin-1, which fits any bytes.
    """
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    marked = [name for mark, name in marks.items() if raw.startswith(mark)]
    zeros = [raw[start:2000:2].count(0) for start in (0, 1)]
    wide = ["utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"]
    if max(zeros) > len(raw[:2000]) // 4:
        marked += wide
    for encoding in (*marked, "utf-8", "cp1252", "latin-1"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError as problem:
            broken = mostly_utf8(raw) if encoding == "utf-8" else None
            if broken is None:
                continue
            text = broken
            line = raw.count(b"\n", 0, problem.start) + 1
            log.info("%s has bytes that are not UTF-8, the first in line %d; each is read as �",
                     path, line)
        if "\0" in text:
            raise LangevinError(
                f"expected text in {path}, found zero bytes as in a binary file; pass a text file"
            )
        if encoding in ("cp1252", "latin-1"):
            log.info("%s is not UTF-8; read as %s, which is a guess: save it as UTF-8 if its "
                     "letters look wrong", path, encoding)
        elif encoding not in ("utf-8", "utf-8-sig"):
            log.info("%s is not UTF-8; read as %s", path, encoding)
        return text, encoding
    raise AssertionError("latin-1 decodes everything")


def mostly_utf8(raw: bytes) -> str | None:
    """The text where nearly all that is not ASCII is UTF-8: then just a few bytes are broken."""
    text = raw.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = sum(not sign.isascii() for sign in text) - broken
    return text if sound > 9 * broken else None
