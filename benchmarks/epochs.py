"""Whole epochs of recipes: a sampler against its optimiser twin, with data, validation and stored sample.

One pair on one thread, in seconds of the processor, so that other work on the machine matters little:
python -m benchmarks.epochs flickr8k-psgld flickr8k-rmsprop-dropout [--rounds 3] [--set KEY=VALUE] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from langevin.files import write_atomic
from langevin.recipe import load_recipe
from langevin.runfolder import commit
from langevin.startup import prepare_process
from langevin.workflow import start

from .timing import Contender, interleave, ratio, timed


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


def one_epoch(recipe: str, overrides: Sequence[str] = ()) -> Callable[[], None]:
    short = ("epochs=1", "burn_in=0.5", "sample_every=0.5", "patience=none")
    loaded = load_recipe(recipe, [*short, *overrides])

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            start(loaded, Path(folder) / "run").run()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sampler")
    parser.add_argument("optimiser")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for both recipes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    prepare_process()
    torch.set_num_threads(1)
    pair = (options.sampler, options.optimiser)
    settings = ["threads=1", *options.set]
    contenders = [Contender(name, timed(one_epoch(name, settings), time.process_time)) for name in pair]
    measured = interleave(contenders, rounds=options.rounds, seconds=None)
    result = {
        "sampler": pair[0], "optimiser": pair[1], "sampler_to_optimiser": ratio(measured[pair[0]], measured[pair[1]]),
        "processor_seconds": {name: own["median"] for name, own in measured.items()}, "rounds": options.rounds,
        "threads": 1, "overrides": options.set, "commit": commit(),
    }
    print(json.dumps(result, indent=1))
    if options.json:
        write_atomic(options.json, json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
