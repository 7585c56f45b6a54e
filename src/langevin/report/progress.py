"""How far work is, on the screen: bars with the time left, of any work, of a run, of chains."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Lines

from ..process import Progress
from ..store.folder import RunFolder
from ..store.manifest import HistoryLine, RunProgress, joint_progress
from ..training.loop import Trainer
from .tables import cell, heading
from .terminal import duration, messages


class Bars(Progress):
    """A bar for each piece of work while it is open, then nothing."""

    def __init__(self, quiet: bool = False) -> None:
        columns = (
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
            TextColumn("{task.completed}{task.fields[of]}"), TimeRemainingColumn(),
        )
        self.lines = Lines(*columns, console=messages, transient=True, disable=quiet)

    def __enter__(self) -> Bars:
        self.lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.stop()

    def begin(self, total: int, parts: str = "samples") -> Callable[[], None]:
        of = f"/{total}" if total else ""
        number = self.lines.add_task(parts, total=total or None, of=of)
        return lambda: self.lines.advance(number)


class TrainingProgress:
    """A live line on a terminal; without one, a line at every record and every half minute."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        self.label, self.quiet = label, quiet
        self.live = messages.is_terminal and not quiet
        self.started, self.first_step, self.last_line = 0.0, 0, 0.0
        self.bar = Lines(
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(compact=True), console=messages, transient=False,
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
        text = self.describe(trainer)
        due = trainer.recorded == trainer.step or time.monotonic() - self.last_line > 30
        if self.live:
            self.bar.update(self.number, completed=trainer.step, text=text)
        elif not self.quiet and due:
            self.last_line = time.monotonic()
            where = f"{self.label} {trainer.step}/{trainer.pace.total}"
            messages.print(f"{where} {text}{self.left(trainer)}", soft_wrap=True)

    def left(self, trainer: Trainer) -> str:
        """Nothing before a step was timed."""
        rate = self.rate(trainer)
        steps = trainer.pace.total - trainer.step
        return f" {duration(steps / rate)} left" if rate else ""

    def rate(self, trainer: Trainer) -> float:
        """Steps a second."""
        return (trainer.step - self.first_step) / max(time.monotonic() - self.started, 1e-9)

    def describe(self, trainer: Trainer) -> str:
        terms = trainer.task.num_data / trainer.task.batches_per_epoch
        loss = trainer.losses[-1] if trainer.losses else trainer.history[-1].train_loss
        text = f"loss {loss:.3f}  {self.rate(trainer) * terms / 1000:.1f}k terms/s"
        return text + validated(trainer.history, trainer.task.score, trainer.running.count)


MOST_LINES = 16
"""Chains that have a line each; of more there is one line for all."""
SHARE = 20
"""Reading how far many chains are takes a twentieth of the time at most."""


class ChainsProgress:
    """A live line for each chain on a terminal; without one, a plain line every half minute.

    It reads the chains' checkpoints, so it moves as often as these are written.
    """

    def __init__(self, folder: RunFolder, quiet: bool = False) -> None:
        self.folder, self.quiet = folder, quiet
        self.live = messages.is_terminal and not quiet
        self.last_look = self.last_line = time.monotonic()
        self.pause = 1.0
        columns = (
            TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}"),
        )
        self.bar, self.score = Lines(*columns, console=messages), folder.recipe.data.score
        self.numbers: dict[str, Any] = {}

    def __enter__(self) -> ChainsProgress:
        if self.live:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.look()
            self.bar.stop()

    def __call__(self) -> None:
        """Called some times a second; looks once a second, or less often where that takes long."""
        now = time.monotonic()
        if now - self.last_look < self.pause:
            return
        if self.live:
            self.look()
        elif not self.quiet and now - self.last_line > 30:
            self.last_line = now
            begun = [f"{name} {text}" for name, progress, text in self.lines() if progress]
            messages.print("; ".join(begun) or "starting", soft_wrap=True)
        self.last_look = time.monotonic()
        self.pause = max(1.0, SHARE * (self.last_look - now))

    def look(self) -> None:
        for name, progress, text in self.lines():
            if name not in self.numbers:
                self.numbers[name] = self.bar.add_task(name, total=None, text="")
            if progress:
                self.bar.update(
                    self.numbers[name], total=progress.total, completed=progress.step, text=text
                )

    def lines(self) -> list[tuple[str, RunProgress | None, str]]:
        """Name, progress and words of each chain, or of all together."""
        each = [chain.progress() for chain in self.folder.chains]
        if len(each) <= MOST_LINES:
            return [(chain.path.name, progress, progress_line(progress, self.score))
                    for chain, progress in zip(self.folder.chains, each, strict=True)]
        whole = joint_progress(each)
        steps = f"{whole.step}/{whole.total}" if whole else "not started"
        done = sum(progress is not None and progress.finished for progress in each)
        return [(f"{len(each)} chains", whole, f"{steps}  {done} finished")]


def progress_line(progress: RunProgress | None, score: str) -> str:
    """Steps, and the last scores on validation."""
    if not progress:
        return "not started"
    text = f"{progress.step}/{progress.total}"
    return text + validated(progress.history, score, progress.averaged)


def validated(history: Sequence[HistoryLine], score: str, samples: int) -> str:
    """The last line of the learning curve, and the average of so many samples."""
    if not history:
        return ""
    text = f"  valid {heading(score)} {cell(history[-1].valid, score)}"
    if history[-1].average:
        text += f"  average of {samples} {cell(history[-1].average, score)}"
    return text
