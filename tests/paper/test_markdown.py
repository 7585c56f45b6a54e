from io import StringIO

import pytest
from rich.console import Console

from paper.markdown import rendered

PAGE = """A title

| run | error | best of all | precision |
|---|---|---|---|
| `trec-psgld` | 7.40 ± 0.12 | **no**, +0.5 (one run) | float32 |
| `a \\| b` | — | yes | float32 |


The end."""


def shown(width: int, page: str = PAGE) -> list[str]:
    console = Console(file=StringIO(), width=width, highlight=False)
    console.print(rendered(page, width))
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    return [line.rstrip() for line in lines]


def test_a_wide_terminal_shows_each_line_as_one_and_what_is_the_same_once():
    assert shown(48) == [
        "A title", "", "All: precision: float32",
        "run               error         best of all", "─" * 43,
        "trec-psgld  7.40 ± 0.12  no, +0.5 (one run)", "a | b                 —                 yes", "", "The end.",
    ]


def test_cells_break_only_where_they_may():
    assert shown(34)[3:-2] == [
        "                      best of", "run          error        all", "─" * 29,
        "trec-psgld    7.40        no,", "            ± 0.12       +0.5", "                    (one run)", "",
        "a | b            —        yes",
    ]


def test_a_narrow_terminal_shows_records():
    assert shown(30)[3:-2] == [
        "trec-psgld", "  error        7.40 ± 0.12", "  best of all  no, +0.5 (one", "               run)", "a | b",
        "  error        —", "  best of all  yes",
    ]


@pytest.mark.parametrize("page", [
    "| a | b |\n|---|---|", "|  | b |\n|---|---|\n|  | 1 |", "| a | b |\n|---|---|\n| 1 |\n| 2 | 3 | 4 |",
    "", "|a|\n|---|",
])
@pytest.mark.parametrize("width", [4, 80])
def test_tables_without_lines_or_headers_or_cells_are_shown_all_the_same(page, width):
    shown(width, page)
    assert shown(20, "|x|y|\n|---|---|\n|1|y\\||")[-1] == "1  y|"
