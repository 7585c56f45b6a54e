"""One of the two processes that `benchmarks.parallel` times, started by torchrun: RECIPE KEY=VALUE
…

In each round both train some steps together, then the first alone on two threads while the second
sleeps.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from langevin.process import prepare_process
from langevin.recipe import load_recipe
from langevin.tasks import open_task
from langevin.tasks.base import Carry, Task
from langevin.tasks.shards import WHOLE
from langevin.training.clipping import Clipper
from langevin.training.gradient import fill_gradient
from langevin.training.loop import build
from langevin.training.parallel import Alone
from langevin.training.state import Parts

ROUNDS, SECONDS, WARM_UP = 5, 0.5, 2
TWO, THREADS = "two processes", "two threads"
DDP = "two processes, torch's DistributedDataParallel"
SIZES = (2**10, 2**14, 2**18, 2**20, 2**22, 2**23)
"""Numbers in a buffer that is summed over both."""


class Stepper:
    """A training that goes on, step after step, and where its time goes."""

    def __init__(self, parts: Parts, task: Task) -> None:
        self.parts, self.task, self.step = parts, task, 0
        self.carries: list[Carry] = [None] * len(parts.pieces)
        self.clipper = Clipper(task.recipe.run.clip, task.recipe.run.clip_norm)
        self.update = 0.0

    def run(self, steps: int) -> float:
        """Seconds a step."""
        began = time.perf_counter()
        for _ in range(steps):
            _, self.carries = fill_gradient(self.parts, self.task, self.step, self.carries)
            self.clipper.clip_(self.parts.trained)
            at = time.perf_counter()
            self.parts.sampler.step()
            self.update += (time.perf_counter() - at) / steps
            self.step += 1
        return (time.perf_counter() - began) / steps

    def timed(self, steps: int) -> dict[str, float]:
        self.update = 0.0
        cpu = time.process_time()
        wall = self.run(steps)
        return {"seconds": wall, "update": self.update, "cpu": (time.process_time() - cpu) / steps}


def main() -> None:
    prepare_process()
    torch.set_num_threads(1)
    recipe = load_recipe(sys.argv[1], sys.argv[2:])
    recipe = recipe.model_copy(update={"run": recipe.run.model_copy(update={"threads": 1})})
    task = open_task(recipe)
    pair = Stepper(build(recipe, task), task)
    group = pair.parts.group
    single = Stepper(dataclasses.replace(build(recipe, task), group=Alone(), pieces=[WHOLE]), task)
    parts = build(recipe, task)
    torchs = Stepper(dataclasses.replace(parts, model=DistributedDataParallel(parts.model), group=Alone()), task)
    for stepper in (pair, torchs):
        stepper.run(WARM_UP)
    steps = group.decide(max(2, round(SECONDS / pair.run(WARM_UP))))
    rounds: dict[str, list[Any]] = {TWO: [], DDP: [], THREADS: [], "one thread": []}
    for _ in range(ROUNDS):
        dist.barrier()
        for name, stepper in ((TWO, pair), (DDP, torchs)):
            rounds[name].append(group.gather(stepper.timed(steps)))
        for name, threads in ((THREADS, 2), ("one thread", 1)):
            if group.number == 0:
                torch.set_num_threads(threads)
                single.run(1)
                rounds[name].append([single.timed(max(2, steps // 2))])
                torch.set_num_threads(1)
            dist.barrier()
    sums = all_reduces()
    if group.number == 0:
        print(json.dumps(summary(rounds, task, pair.parts) | {"all_reduce": sums, "load": os.getloadavg()[0]}))


def all_reduces() -> list[dict[str, float]]:
    """Seconds that summing buffers of some sizes takes, the fastest of several: 4 bytes a
    number."""
    found = []
    for size in SIZES:
        buffer = torch.zeros(size)

        def sum_up(buffer: torch.Tensor = buffer) -> None:
            dist.all_reduce(buffer)

        found.append({"bytes": 4 * size, "seconds": fastest(sum_up)})
    return found


def fastest(work: Callable[[], None], times: int = 20) -> float:
    spent = []
    for _ in range(times):
        dist.barrier()
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return min(spent)


def summary(rounds: dict[str, list[Any]], task: Task, parts: Parts) -> dict[str, Any]:
    """Medians; the ratio of speeds round by round; processor time of all processes together, which
    other work on the machine disturbs least: two processes that lost nothing would need that of one
    thread.
    """

    def median(name: str, key: str) -> float:
        return statistics.median(turn[0][key] for turn in rounds[name])

    ratios = [two[0]["seconds"] / pair[0]["seconds"]
              for pair, two in zip(rounds[TWO], rounds[THREADS], strict=True)]
    cpu = {name: statistics.median(sum(own["cpu"] for own in turn) for turn in turns)
           for name, turns in rounds.items()}
    return {
        "bytes": 4 * sum(p.numel() for p in parts.trained),
        "rows": len(task.training_batch(0, 0)[0]),
        "step": {name: median(name, "seconds") for name in rounds},
        "update": {name: median(name, "update") for name in rounds},
        "cpu": cpu, "share_of_perfect": cpu["one thread"] / cpu[TWO],
        "speed_of_two_threads": statistics.median(ratios), "ratios": ratios,
    }


main()
