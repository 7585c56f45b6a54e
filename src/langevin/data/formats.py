"""The rows of a file by its format: CSV, TSV, JSON lines, plain lines; one after another.

A tab and a line end always separate in TSV, unless all of it reads as cells in quotes. Only a JSON
file that is one list is read at once.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict

from ..errors import LangevinError
from .encoding import Encoding
from .text import Text

Row = dict[str, Any]


class Dialect(TypedDict, total=False):
    """How the cells of a table stand apart, as `csv.reader` takes it."""

    delimiter: str
    strict: bool
    quoting: Literal[3]


def kind_of_table(path: str) -> str:
    ending = Path(path).suffix.lower()
    if ending in (".csv", ".tsv"):
        return ending[1:]
    return "json" if ending in (".jsonl", ".ndjson", ".json") else "lines"


def labelled_lines(text: Text, encoding: Encoding) -> Iterator[Row]:
    """`label text`: the label stands before the first white space; blank lines are skipped."""
    for line in lines_of(text, encoding):
        if line.strip():
            label, _, rest = line.strip().replace("\t", " ", 1).partition(" ")
            yield {"label": label, "text": rest.strip()}


def cell_rows(
    text: Text, encoding: Encoding, path: str, kind: str | None = None
) -> Iterator[Row]:
    """The rows of a CSV or TSV file by column; a column that a row lacks is None.

    The ending of its name says which it is, unless its reader knows the `kind`.

    Cells beyond the columns of the first line and quotes that are not closed are refused: text
    would be lost.
    """
    kind, last = kind or kind_of_table(path), 0
    with encoding.open(text) as lines:
        try:
            reader = csv.reader(lines, **dialect_of(text, encoding, kind))
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
                        f"line {last} of {path} has more cells than the first line has columns; "
                        f"{how}"
                    )
                yield dict(itertools.zip_longest(columns, cells or [""]))
        except csv.Error as error:
            raise LangevinError(
                f"{path} is not valid {kind.upper()} after line {last}: {error}; mend its quotes"
            ) from None


def dialect_of(text: Text, encoding: Encoding, kind: str) -> Dialect:
    """CSV with commas, or with semicolons where the first line has no comma.

    TSV with quotes as signs of the text; or with quotes around cells, as spreadsheets write them
    where a text has a quote or a line end: if all of a TSV can be read so, its rows are then of one
    length, two or more, and no cell has a tab, as it would if a quotation that goes on over several
    lines were taken for one cell.
    """
    with encoding.open(text) as lines:
        if kind == "csv":
            first = next((line.lstrip().splitlines()[0] for line in lines if line.strip()), "")
            return {"delimiter": ";" if ";" in first and "," not in first else ",", "strict": True}
        quoted: Dialect = {"delimiter": "\t", "strict": True}
        if alike(csv.reader(lines, **quoted)):
            return quoted
    return {"delimiter": "\t", "quoting": csv.QUOTE_NONE}


def alike(rows: Iterator[list[str]]) -> bool:
    """Whether rows are of one length, two or more, and have no tabs in their cells."""
    length = 0
    try:
        for row in filter(None, rows):
            length = length or len(row)
            if len(row) != length or any("\t" in cell for cell in row):
                return False
    except csv.Error:
        return False
    return length > 1


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


def json_rows(text: Text, encoding: Encoding, path: str) -> Iterator[Row]:
    """One object a line, or one list of objects."""
    with encoding.open(text) as lines:
        first = next((line for line in lines if line.strip()), "")
    if listed := first.lstrip().startswith("["):
        with encoding.open(text) as lines:
            parts = iter([lines.read()])
    else:
        parts = lines_of(text, encoding)
    for place, part in enumerate(parts, 1):
        if not part.strip():
            continue
        where = path if listed else f"line {place} of {path}"
        read = parse_json(part, where)
        for number, row in enumerate(read if listed else [read], 1):
            if not isinstance(row, dict):
                at = f"as number {number}" if listed else f"in line {place}"
                raise LangevinError(
                    f"expected an object in each line of {path}, got {str(row)[:60]!r} {at}"
                )
            yield row


def parse_json(part: str, where: str) -> Any:
    """What a line, or a file that is one list, says in JSON."""
    try:
        read = json.loads(part)
        if "\\u" in part:  # may be half of a pair, which no file can hold
            json.dumps(read, ensure_ascii=False).encode()
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
    return read


def lines_of(text: Text, encoding: Encoding) -> Iterator[str]:
    """Lines by line feeds alone, or by carriage returns where there are no others.

    Texts may hold other signs that Python takes for line ends.
    """
    end = "\n" if encoding.line_feeds else "\r"
    with encoding.open(text, end) as lines:
        for line in lines:
            whole = line.removesuffix(end)
            yield whole if whole == line else whole.removesuffix("\r")
