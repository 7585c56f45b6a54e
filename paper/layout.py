"""How numbers and tables are written in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .numbers import Number

DIGITS = {"nll": 4, "perplexity": 2, "error": 2}


def markdown(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join(head + [f"| {' | '.join(line)} |" for line in lines])


def show(number: Number | float | None, digits: int) -> str:
    if number is None:
        return "—"
    return number.text(digits) if isinstance(number, Number) else f"{number:.{digits}f}"
