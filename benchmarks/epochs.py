"""Whole epochs of recipes: a sampler against its optimiser twin, with validation and stored sample.

The data are read before, once for each recipe, and timed apart. One pair on one thread, in seconds
of the processor, so that other work on the machine matters little:
python -m benchmarks.epochs flickr8k-psgld flickr8k-rmsprop-dropout [--rounds 3] [--set KEY=VALUE]
[--must 1.1] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from langevin.errors import LangevinError
from langevin.files import write_atomic
from langevin.process import prepare_process
from langevin.recipe import Recipe, load_recipe
from langevin.store.folder import RunFolder
from langevin.store.manifest import commit
from langevin.tasks import Task, open_task
from langevin.process import prepare_device
from langevin.training.loop import Trainer

from .timing import Contender, Turn, interleave, ratio


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
register("flickr8k-psgld", "flickr8k-rmsprop-dropout", must=1.10)


def bound(sampler: str, optimiser: str) -> float | None:
    """What the ratio of these recipes must be, where that is registered."""
    return next((pair.must for pair in EPOCH_PAIRS if (pair.sampler, pair.optimiser) == (sampler, optimiser)), None)


def epoch_contenders(pair: EpochPair) -> list[Contender]:
    """None where the data are missing: then the pair is not measured."""
    try:
        return [Contender(name, one_epoch(*opened(name))) for name in (pair.sampler, pair.optimiser)]
    except LangevinError as error:
        print(f"{pair.title}: left out: {error}", file=sys.stderr)
        return []


def opened(recipe: str, overrides: Sequence[str] = ()) -> tuple[Recipe, Task]:
    """A recipe cut to one epoch, with its data."""
    short = ("epochs=1", "burn_in=0.5", "sample_every=0.5", "patience=none")
    loaded = load_recipe(recipe, [*short, *overrides])
    prepare_device(loaded.run.device, loaded.run.threads)
    return loaded, open_task(loaded)


def one_epoch(recipe: Recipe, task: Task, clock: Callable[[], float] = time.perf_counter) -> Turn:
    """Epochs of fresh models on data that are there; the clock runs while they train."""

    def run(epochs: int) -> float:
        seconds = 0.0
        for _ in range(epochs):
            with tempfile.TemporaryDirectory() as folder:
                trainer = Trainer(RunFolder.create(Path(folder) / "run", recipe, task.vocabulary, task.facts), task)
                began = clock()
                trainer.run()
                seconds += clock() - began
        return seconds

    return run


def measure(pair: tuple[str, str], settings: Sequence[str], rounds: int, must: float | None) -> dict[str, Any]:
    """Processor seconds of reading and of training, the ratio of the latter, and whether it is what
    is wanted."""
    contenders, reading = [], {}
    for name in pair:
        began = time.process_time()
        recipe, task = opened(name, settings)
        reading[name] = time.process_time() - began
        contenders.append(Contender(name, one_epoch(recipe, task, time.process_time)))
    measured = interleave(contenders, rounds=rounds, seconds=None)
    found = ratio(measured[pair[0]], measured[pair[1]])
    kept = {} if must is None else {f"at most {must:g} times {pair[1]}": found["ratio"] <= must}
    return {
        "sampler": pair[0], "optimiser": pair[1], "sampler_to_optimiser": found, "must": must, "kept": kept,
        "processor_seconds": {name: own["median"] for name, own in measured.items()}, "reading_seconds": reading,
        "rounds": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sampler")
    parser.add_argument("optimiser")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for both recipes")
    parser.add_argument("--must", type=float, help="what the ratio must be at most (default: as registered)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    prepare_process()
    torch.set_num_threads(1)
    pair = (options.sampler, options.optimiser)
    must = bound(*pair) if options.must is None else options.must
    result = measure(pair, ["threads=1", *options.set], options.rounds, must)
    result |= {"threads": 1, "overrides": options.set, "commit": commit()}
    print(json.dumps(result, indent=1))
    if options.json:
        write_atomic(options.json, json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
