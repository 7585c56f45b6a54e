"""Markdown pages on a terminal: tables as tables or, where the terminal is too narrow for one, as a
list of records."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GAP = 2
"""Blanks between two columns."""
BAR = "\0"
"""Stands for a bar inside a cell."""
NUMBER = re.compile(r"[-+−±—\d]|yes\b|no\b|level\b")
"""How a cell begins that stands right: numbers, and answers that numbers follow."""
Cells = Sequence[str]


def rendered(page: str, width: int) -> Group:
    """Paragraphs, and tables between them, `width` characters wide."""
    parts: list[RenderableType] = []
    for paragraph in re.split(r"\n\s*\n", page.strip()):
        parts += [table_from(paragraph, width) if paragraph.startswith("|") else Text(plain(paragraph)), Text()]
    return Group(*parts[:-1])


def table_from(markdown: str, width: int) -> RenderableType:
    """With whole cells if they fit, else with cells that break where they may, else a record for
    each line.

    What is the same in every line is told once, above.
    """
    head, _, *lines = (cells_of(line) for line in markdown.splitlines())
    lines = [[*line, *[""] * len(head)][:len(head)] for line in lines]
    same, head, lines = without_constants(head, lines)
    shown: RenderableType = records(head, lines)
    for tried in ([[broken(cell) for cell in line] for line in lines], lines):
        widths = [max((cell_len(piece) for piece in [*name.split(), *"\n".join(column).splitlines()]), default=0)
                  for name, *column in zip(head, *tried, strict=True)]
        if sum(widths) + GAP * len(widths) <= width:
            shown = grid(head, tried, widths)
    return Group(Text(same), shown) if same else shown


def cells_of(line: str) -> list[str]:
    inside = line.strip().replace("\\|", BAR).removeprefix("|").removesuffix("|")
    return [plain(cell.strip()).replace(BAR, "|") for cell in inside.split("|")]


def plain(text: str) -> str:
    """Without the marks for code and emphasis."""
    return text.replace("`", "").replace("**", "")


def without_constants(head: Cells, lines: Sequence[Cells]) -> tuple[str, list[str], list[list[str]]]:
    """The columns that differ, and the others in words; the first always stays."""
    columns = list(zip(*lines, strict=True)) if len(lines) > 1 else []
    same = {n: column[0] for n, column in enumerate(columns) if n and len(set(column)) == 1}
    words: dict[str, list[str]] = {}
    for number, value in same.items():
        words.setdefault(value, []).append(head[number])
    kept = [number for number in range(len(head)) if number not in same]
    told = "; ".join(f"{', '.join(names)}: {value}" for value, names in words.items())
    return (f"All: {told}" if told else "", [head[n] for n in kept], [[line[n] for n in kept] for line in lines])


def broken(cell: str) -> str:
    """A cell may break after a comma, and before a spread or a bracket, nowhere else."""
    return cell.replace(", ", ",\n").replace(" ±", "\n±").replace(" (", "\n(")


def grid(head: Cells, lines: Sequence[Cells], widths: Sequence[int]) -> Table:
    """Headers break into the width of what stands below them; numbers stand right, words left."""
    several = any("\n" in cell for line in lines for cell in line)
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold", pad_edge=False,
                 padding=(0, GAP - 1, 0, 0), leading=1 if several else 0)
    for name, width, *column in zip(head, widths, *lines, strict=True):
        right = column and all(NUMBER.match(cell) for cell in column if cell)
        made.add_column(Text(name), justify="right" if right else "left", width=width)
    for line in lines:
        made.add_row(*(Text(cell, no_wrap=True) for cell in line))
    return made


def records(head: Cells, lines: Sequence[Cells]) -> RenderableType:
    """The first cell of each line as a heading, the others with their names below it; without
    lines, the head."""
    if not lines:
        return Text(", ".join(head))
    shown: list[RenderableType] = []
    for first, *others in lines:
        made = Table.grid(padding=(0, GAP, 0, 0))
        for name, cell in zip(head[1:], others, strict=True):
            made.add_row(Text(name), Text(cell))
        shown += [Text(first, style="bold"), Padding(made, (0, 0, 0, GAP))]
    return Group(*shown)
