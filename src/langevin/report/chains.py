"""Several chains on the screen: how far each is while they run, and what came of each."""

from __future__ import annotations

import time

from rich.console import Group
from rich.progress import BarColumn, Progress, TextColumn

from ..store.folder import RunFolder
from ..store.manifest import Progress as RunProgress
from .terminal import messages, table


class ChainsProgress:
    """A live line for each chain on a terminal; without one, a plain line every half minute.

    It reads the chains' checkpoints, so it moves as often as these are written.
    """

    def __init__(self, folder: RunFolder, quiet: bool = False) -> None:
        self.folder, self.quiet = folder, quiet
        self.live = messages.is_terminal and not quiet
        self.looked = self.told = time.monotonic()
        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[text]}")
        self.bar = Progress(*columns, console=messages)
        self.numbers = [self.bar.add_task(chain.path.name, total=None, text="") for chain in folder.chains]

    def __enter__(self) -> ChainsProgress:
        if self.live:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.look()
        if self.live:
            self.bar.stop()

    def __call__(self) -> None:
        """Called some times a second; looks once a second."""
        now = time.monotonic()
        if now - self.looked < 1:
            return
        self.looked = now
        if self.live:
            self.look()
        elif not self.quiet and now - self.told > 30:
            self.told = now
            said = [f"{c.path.name} {describe(c.progress())}" for c in self.folder.chains if c.progress()]
            messages.print("; ".join(said) or "starting", soft_wrap=True)

    def look(self) -> None:
        for number, chain in zip(self.numbers, self.folder.chains, strict=True):
            if progress := chain.progress():
                self.bar.update(number, total=progress.total, completed=progress.step, text=describe(progress))


def describe(progress: RunProgress | None) -> str:
    """Steps, and the last scores on validation."""
    if not progress:
        return "not started"
    text = f"{progress.step}/{progress.total}"
    if progress.history:
        last = progress.history[-1]
        score = next(iter(last.valid))
        text += f"  valid {last.valid[score]:.4f}"
        if last.average:
            text += f"  average of {progress.averaged} {last.average[score]:.4f}"
    return text


def chains_table(folder: RunFolder) -> Group:
    """One row for each chain: seed, state, steps, samples, validation scores of the last sample and of its average."""
    rows = []
    score = "score"
    for chain in folder.chains:
        progress = chain.progress()
        history = progress.history if progress else ()
        score = next(iter(history[-1].valid)) if history else score
        averages = [line.average for line in history if line.average]
        rows.append((
            chain.path.name, str(chain.recipe.run.seed),
            "finished" if progress and progress.finished else "can be resumed",
            f"{progress.step} of {progress.total}" if progress else "0 of ?", str(len(chain.store())),
            f"{history[-1].valid[score]:.4f}" if history else "", f"{averages[-1][score]:.4f}" if averages else "",
        ))
    columns = ("chain", "seed", "state", "steps", "samples", "last sample", "its average")
    return table(f"{folder.path}: {len(rows)} chains, validation {score}", columns, rows)
