"""Whole epochs of recipes: a sampler against its optimiser twin, with data, validation and stored sample."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from langevin.recipe import load_recipe
from langevin.workflow import start

from .timing import Contender, timed


@dataclass(frozen=True)
class EpochPair:
    """Two shipped recipes whose epochs are compared, and what their ratio must be."""

    sampler: str
    optimiser: str
    must: float
    goal: float

    @property
    def title(self) -> str:
        return f"epoch of {self.sampler} : {self.optimiser}"


EPOCH_PAIRS: list[EpochPair] = []


def register(sampler: str, optimiser: str, *, must: float = 1.05, goal: float = 1.0) -> None:
    """Add a pair of recipes to `--epoch-pairs` and to the table of required ratios."""
    EPOCH_PAIRS.append(EpochPair(sampler, optimiser, must, goal))


register("wp-lstm-psgld", "wp-lstm-rmsprop")


def epoch_contenders(pair: EpochPair) -> list[Contender]:
    return [Contender(name, timed(one_epoch(name))) for name in (pair.sampler, pair.optimiser)]


def one_epoch(recipe: str) -> Callable[[], None]:
    loaded = load_recipe(recipe, ["epochs=1", "burn_in=0.5", "sample_every=0.5", "patience=none"])

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            start(loaded, Path(folder) / "run").run()

    return run
