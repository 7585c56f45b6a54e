"""One line over several pieces of work that follow each other, with the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Lines

from ..process import Progress
from ..report.terminal import duration, messages

EVERY = 15.0
"""Seconds between two lines where there is no terminal."""
TOLD_FROM = 0.03
"""Share of the work from which on the time that is left is told."""


class Stages(Progress):
    """`shares` says how long each stage takes beside the others; what they took tells the rest."""

    def __init__(self, shares: Mapping[str, float], quiet: bool = False) -> None:
        whole = sum(shares.values())
        self.shares = {name: share / whole for name, share in shares.items()}
        self.quiet, self.live = quiet, messages.is_terminal and not quiet
        self.name, self.before, self.within = "", 0.0, 0.0
        self.skipped = 0.0
        self.started = self.last_line = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24),
                   TextColumn("{task.percentage:3.0f} %  {task.fields[left]}"))  # fmt: skip
        self.lines = Lines(*columns, console=messages, transient=True)
        self.task = self.lines.add_task("", total=1.0, left="")

    def __enter__(self) -> Stages:
        self.started = time.monotonic()
        if self.live:
            self.lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.stop()

    def enter(self, name: str) -> None:
        """The stage before is over, and this one begins."""
        self.before += self.shares.get(self.name, 0.0)
        self.name, self.within = name, 0.0
        self.show(anew=True)

    def leap(self, share: float) -> None:
        """So much of this stage was done on another day."""
        self.skipped += self.shares[self.name] * (share - self.within)
        self.at(share)

    def at(self, share: float) -> None:
        """How much of this stage is done, 0 to 1; it never goes back."""
        self.within = max(self.within, min(share, 1.0))
        self.show()

    def begin(self, total: int, parts: str = "samples") -> Callable[[], None]:
        done = 0

        def advance() -> None:
            nonlocal done
            done += 1
            if total:
                self.at(done / total)

        return advance

    @property
    def share(self) -> float:
        """Of all the work."""
        return min(self.before + self.shares.get(self.name, 0.0) * self.within, 1.0)

    @property
    def left(self) -> str:
        done = self.share - self.skipped
        if done < TOLD_FROM:
            return ""
        seconds = (time.monotonic() - self.started) * (1 - self.share) / done
        return f"about {duration(seconds)} left"

    def show(self, *, anew: bool = False) -> None:
        if self.live:
            self.lines.update(self.task, description=self.name, completed=self.share,
                              left=self.left)  # fmt: skip
        elif not self.quiet and (anew or time.monotonic() - self.last_line > EVERY):
            self.last_line = time.monotonic()
            left = f", {self.left}" if self.left else ""
            messages.print(f"{self.name}: {100 * self.share:.0f} %{left}", soft_wrap=True)
