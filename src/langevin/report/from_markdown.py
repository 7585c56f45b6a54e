"""Markdown pages on a terminal: tables as tables or, where the terminal is too narrow for one, as a list of records."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

GAP, EDGES = 2, 2
"""Blanks between two columns, and beside them all."""
Cells = Sequence[str]


def rendered(page: str, width: int) -> Group:
    """Paragraphs, and tables between them, `width` characters wide."""
    parts: list[RenderableType] = []
    for paragraph in page.split("\n\n"):
        parts += [table_from(paragraph, width) if paragraph.startswith("|") else Text(plain(paragraph)), Text()]
    return Group(*parts[:-1])


def table_from(markdown: str, width: int) -> RenderableType:
    """With whole cells if they fit, else with cells that break where they may, else a record for each line."""
    head, _, *lines = ([plain(cell) for cell in cells_of(line)] for line in markdown.splitlines())
    for tried in (lines, [[broken(cell) for cell in line] for line in lines]):
        widths = [max(len(piece) for piece in [*name.split(), *"\n".join(column).splitlines()])
                  for name, *column in zip(head, *tried, strict=True)]
        if sum(widths) + GAP * len(widths) + EDGES <= width:
            return grid(head, tried, widths)
    return records(head, lines)


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").replace("\\|", "\0").split("|")]


def plain(text: str) -> str:
    """Without the marks for code and emphasis."""
    return text.replace("`", "").replace("**", "").replace("\0", "|")


def broken(cell: str) -> str:
    """A cell may break after a comma, and before a spread or a bracket, nowhere else."""
    return cell.replace(", ", ",\n").replace(" ±", "\n±").replace(" (", "\n(")


def grid(head: Cells, lines: Sequence[Cells], widths: Sequence[int]) -> Table:
    """Headers break into the width of what stands below them; numbers stand right, names left."""
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for number, (name, width) in enumerate(zip(head, widths, strict=True)):
        made.add_column(Text(name), justify="right" if number else "left", vertical="bottom", width=width)
    for line in lines:
        made.add_row(*(Text(cell, no_wrap=True) for cell in line))
    return made


def records(head: Cells, lines: Sequence[Cells]) -> Group:
    """The first cell of each line as a heading, the others with their names below it."""
    shown: list[RenderableType] = []
    for first, *others in lines:
        made = Table.grid(padding=(0, GAP, 0, 0))
        for name, cell in zip(head[1:], others, strict=True):
            made.add_row(Text(f"  {name}"), Text(cell))
        shown += [Text(first, style="bold"), made]
    return Group(*shown)
