"""What people see in the terminal: progress with rates and time left, tables, small curves."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..training.loop import Trainer
from .controls import show_controls


class SafeConsole(Console):
    """A console that passes no control characters of texts on to the terminal, only its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            own = segment.control is not None
            yield segment if own else Segment(show_controls(segment.text), segment.style)


screen = SafeConsole(highlight=False, markup=False, emoji=False)
"""Results, on standard output. Labels and paths of users stand in them: brackets and colons mean themselves."""
messages = SafeConsole(stderr=True, highlight=False, markup=False, emoji=False)
"""Everything that is not a result, on standard error, so that --json output stays clean."""

BARS = "▁▂▃▄▅▆▇█"


class LogToScreen(logging.Handler):
    """What the library has to say (that a kernel was compiled, once) as a dim line."""

    def emit(self, record: logging.LogRecord) -> None:
        messages.print(record.getMessage(), style="dim", soft_wrap=True)


def show_log() -> None:
    """Send the library's notes to the screen; calling it again changes nothing."""
    log = logging.getLogger("langevin")
    if not any(isinstance(handler, LogToScreen) for handler in log.handlers):
        log.addHandler(LogToScreen())
        log.setLevel(logging.INFO)


class TrainingProgress:
    """A live line on a terminal; without one, a plain line at every record and every half minute."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        self.label, self.quiet = label, quiet
        self.live = messages.is_terminal and not quiet
        self.started, self.first_step, self.last_line = 0.0, 0, 0.0
        self.bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.fields[text]}"), TimeRemainingColumn(compact=True),
            console=messages, transient=False,
        )

    def __enter__(self) -> TrainingProgress:
        self.started = self.last_line = time.monotonic()
        if self.live:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.bar.stop()

    def __call__(self, trainer: Trainer) -> None:
        """Called after every step."""
        if not self.first_step:
            self.first_step = trainer.step
            self.number = self.bar.add_task(self.label, total=trainer.pace.total, text="")
        text = self._describe(trainer)
        if self.live:
            self.bar.update(self.number, completed=trainer.step, text=text)
        elif not self.quiet and (trainer.recorded == trainer.step or time.monotonic() - self.last_line > 30):
            self.last_line = time.monotonic()
            left = (trainer.pace.total - trainer.step) / max(self._rate(trainer), 1e-9)
            where = f"{self.label} {trainer.step}/{trainer.pace.total}"
            messages.print(f"{where} {text} {duration(left)} left", soft_wrap=True)

    def _rate(self, trainer: Trainer) -> float:
        return (trainer.step - self.first_step) / max(time.monotonic() - self.started, 1e-9)

    def _describe(self, trainer: Trainer) -> str:
        terms = trainer.task.num_data / trainer.task.batches_per_epoch
        loss = trainer.losses[-1] if trainer.losses else trainer.history[-1].train_loss
        text = f"loss {loss:.3f}  {self._rate(trainer) * terms / 1000:.1f}k terms/s"
        if trainer.history:
            last = trainer.history[-1]
            text += f"  valid {last.valid[trainer.task.score]:.4f}"
            if last.average:
                text += f"  average of {trainer.running.count} {last.average[trainer.task.score]:.4f}"
        return text


@contextmanager
def counting(label: str, quiet: bool = False) -> Iterator[Callable[[int], Callable[[], None]]]:
    """A bar for equal pieces of work: call what it yields with their number, and what that returns after each."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeRemainingColumn(), console=messages, transient=True, disable=quiet) as progress:

        def begin(total: int) -> Callable[[], None]:
            task = progress.add_task(label, total=total)
            return lambda: progress.advance(task)

        yield begin


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, words: bool = False,
    named: bool = False,
) -> Group:
    """A title, not squeezed into the width of its table, and the table; numbers stand right, words left.

    Rows that are `named` have names that a reader copies in the first column: they are never cut.
    """
    made = Table(header_style="bold")
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number and not words else "left", no_wrap=named and not number)
    for row in rows:
        made.add_row(*row)
    return Group(Text(title, style="bold"), made)


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
