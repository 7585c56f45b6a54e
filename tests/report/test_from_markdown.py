from io import StringIO

from rich.console import Console

from langevin.report.from_markdown import rendered

PAGE = """A title

| run | error | best of all |
|---|---|---|
| `trec-psgld` | 7.40 ± 0.12 | **no**, +0.5 (one run) |
| `a \\| b` | — | yes |

The end."""


def shown(width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, highlight=False)
    console.print(rendered(PAGE, width))
    return [line.strip() for line in console.file.getvalue().splitlines() if line.strip(" ─")]


def test_a_wide_terminal_shows_each_line_as_one():
    assert shown(48) == [
        "A title", "run               error         best of all", "trec-psgld  7.40 ± 0.12  no, +0.5 (one run)",
        "a | b                 —                 yes", "The end.",
    ]


def test_cells_break_only_where_they_may():
    assert shown(36) == [
        "A title", "best of", "run          error        all", "no,", "7.40       +0.5",
        "trec-psgld  ± 0.12  (one run)", "a | b            —        yes", "The end.",
    ]


def test_a_narrow_terminal_shows_records():
    assert shown(32) == [
        "A title", "trec-psgld", "error        7.40 ± 0.12", "best of all  no, +0.5 (one", "run)", "a | b",
        "error        —", "best of all  yes", "The end.",
    ]
