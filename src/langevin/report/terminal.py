"""What people see in the terminal: tables, small curves."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from .controls import show_controls
from .tables import Passage, ResultTable


class SafeConsole(Console):
    """A console that passes no control characters of texts on to the terminal, only its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            is_control = segment.control is not None
            yield segment if is_control else Segment(show_controls(segment.text), segment.style)


screen = SafeConsole(highlight=False, markup=False, emoji=False)
"""Results, on standard output. Labels and paths of users stand in them: brackets and colons mean
themselves."""
messages = SafeConsole(stderr=True, highlight=False, markup=False, emoji=False)
"""Everything that is not a result, on standard error, so that --json output stays clean."""

BARS = "▁▂▃▄▅▆▇█"


def be_quiet() -> None:
    """From now on nothing is shown: another process says it."""
    screen.quiet = messages.quiet = True


class LogToScreen(logging.Handler):
    """What the library has to say (that a kernel was compiled) as a dim line, each thing once."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() in self.said:
            return
        self.said.add(record.getMessage())
        messages.print(record.getMessage(), style="dim", soft_wrap=True)


def show_log() -> None:
    """Send the library's notes to the screen; calling it again changes nothing."""
    log = logging.getLogger("langevin")
    if not any(isinstance(handler, LogToScreen) for handler in log.handlers):
        log.addHandler(LogToScreen())
        log.setLevel(logging.INFO)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, words: bool = False,
    named: bool = False,
) -> Group:
    """A title, not squeezed into the width of its table, and the table; numbers stand right, words
    left.

    Rows that are `named` have names that a reader copies in the first column: they are never cut.
    """
    lines = Table(header_style="bold")
    for number, column in enumerate(columns):
        lines.add_column(column, justify="right" if number and not words else "left", no_wrap=named and not number)
    for row in rows:
        lines.add_row(*row)
    return Group(Text(title, style="bold"), lines)


def text_table(result: ResultTable) -> Group:
    rows = [tuple(cell if isinstance(cell, str) else passage_text(cell) for cell in row)
            for row in result.rows]  # fmt: skip
    return table(result.title, result.columns, rows, words=result.words, named=result.named)


def passage_text(passage: Passage) -> Text:
    """Brighter where the share is large; what is marked between brackets, to be found
    uncoloured."""
    text = Text()
    for piece in passage:
        share = piece.share
        colour = (120 + 135 * share, 120 + 40 * share, 120 - 100 * share)
        style = f"rgb({','.join(str(round(part)) for part in colour)})"
        shown = f"⟦{piece.text}⟧" if piece.marked else piece.text
        text.append(shown, style=f"bold {style}" if piece.marked else style)
    return text


def curve(values: Sequence[float]) -> str:
    """A learning curve in one line of block characters."""
    if not values:
        return ""
    width = min(48, len(values))
    picked = [values[i * len(values) // width] for i in range(width)]
    low, high = min(picked), max(picked)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0
    return "".join(BARS[round((value - low) * scale)] for value in picked)


def duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
