"""Measure what `benchmarks.scaling` reckons with, on this machine: `python -m
benchmarks.scaling_parts [PART …]`.

Each part is kept in results/scaling.json as soon as it is measured; parts that are there stay,
unless they are named.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed
from torch import nn

from langevin.posterior.average import average
from langevin.recipe import Recipe, load_recipe
from langevin.store.checkpoint import load_progress, save_checkpoint
from langevin.store.folder import CHECKPOINT
from langevin.store.manifest import RunProgress, processor_name
from langevin.store.records import write_json
from langevin.store.samples import SampleStore
from langevin.training.chains import resume_chains, start_chains
from langevin.training.loop import Trainer
from langevin.training.session import start

from .scaling import RESULTS, Costs, Plan, simulate

SHAPES = {"LSTM 1×64, characters": 64, "LSTM 1×256, characters": 256}
INPUTS = torch.zeros(2, 4)
SENTENCE = "The French were near. It was a clear night, and the snow lay deep on the road. "


def recipe_of(folder: Path, hidden: int, *more: str) -> Recipe:
    text = folder / "text.txt"
    if not text.exists():
        text.write_text(SENTENCE * 4000)
    return load_recipe("text", [f"corpus={text}", f"hidden={hidden}", "by_size=false", "pool=none", "epochs=2",
                                "threads=1", *more])


def least_seconds(do: Callable[[], object], times: int) -> float:
    """Of one call, the least of several: other work on the machine only ever adds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        do()
        taken.append(time.perf_counter() - began)
    return min(taken)


def measure_costs(folder: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "langevin", "resume", "--help"]
    starting = least_seconds(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True), 3)
    return {name: vars(costs_of(start(recipe_of(folder, hidden), folder / str(hidden)), starting))
            for name, hidden in SHAPES.items()}


def costs_of(trainer: Trainer, starting: float) -> Costs:
    """Of a run that stands at its beginning."""
    for _ in range(5):
        trainer._train_one_batch()
    step = least_seconds(trainer._train_one_batch, 30)
    update = least_seconds(trainer.sampler.step, 30)
    weights = sum(p.numel() for p in trainer.model.parameters())
    steps = iter(range(10**6, 10**9))
    sample = least_seconds(lambda: trainer.store.append(trainer.model, next(steps)), 10)
    size = trainer.store.samples[-1].path.stat().st_size
    checkpoint = least_seconds(trainer.save, 10)
    saved = (trainer.folder.path / CHECKPOINT).stat().st_size
    return Costs(step, update, weights, sample, size, checkpoint, saved, starting)


def measure_gloo(folder: Path) -> dict[str, Any]:
    """Two processes on this machine: a small and a large message give latency and bandwidth."""
    torch.multiprocessing.spawn(reduce_with_other, (str(folder / "meet"), str(folder / "gloo.json")), 2)
    taken: dict[str, float] = json.loads((folder / "gloo.json").read_text())
    small, large = taken["1024"], taken[str(64 << 20)]
    return {"seconds": taken, "latency": small / 2, "bandwidth": (64 << 20) / (large - small)}


def reduce_with_other(rank: int, meet: str, out: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=2)
    taken = {}
    for size in (1024, 1 << 20, 64 << 20):
        tensor = torch.zeros(size // 4)
        distributed.all_reduce(tensor)
        taken[size] = least_seconds(lambda tensor=tensor: distributed.all_reduce(tensor), 15)
    if not rank:
        Path(out).write_text(json.dumps(taken))
    distributed.destroy_process_group()


def measure_store(folder: Path) -> dict[str, Any]:
    """Append, open and average 1,000 and 10,000 samples; linear is a ratio of 1 in the time of
    each."""
    found: dict[str, Any] = {"samples": {}}
    for count in (1_000, 10_000):
        model, path = nn.Linear(4, 3), folder / f"store-{count}"
        store = SampleStore(path)
        began = time.perf_counter()
        for step in range(count):
            store.append(model, step)
        appended = time.perf_counter()
        records = [sample.record() for sample in store.samples]
        middle = time.perf_counter()
        opened = SampleStore(path, known=records)
        done = time.perf_counter()
        average(opened, model, lambda m: m(INPUTS))
        averaged = time.perf_counter()
        found["samples"][str(count)] = {"append": (appended - began) / count, "open": (done - middle) / count,
                                        "average": (averaged - done) / count}
        found |= checkpoint_of(folder, records, count) | {"open_seconds_each": (done - middle) / count}
    few, many = found["samples"].values()
    found["ratios"] = {name: many[name] / few[name] for name in few}
    return found


def checkpoint_of(folder: Path, records: list[Any], count: int) -> dict[str, float]:
    """A checkpoint names all samples of its run."""
    path = folder / "checkpoint.safetensors"
    progress = RunProgress(step=count, total=count, recorded=count, finished=False, stopped_early=False, clipped=0,
                           clip_asked=0, averaged=count, seconds=1.0, num_data=1, samples=())
    save_checkpoint(path, {"x": torch.zeros(1)}, progress)
    empty = path.stat().st_size
    whole = progress.model_copy(update={"samples": tuple(records)})
    seconds = least_seconds(lambda: save_checkpoint(path, {"x": torch.zeros(1)}, whole), 3)
    looked = least_seconds(lambda: load_progress(path), 3)
    return {"checkpoint_bytes_each": (path.stat().st_size - empty) / count,
            f"checkpoint_seconds_{count}": seconds, f"look_seconds_{count}": looked}


def measure_chains(folder: Path) -> dict[str, Any]:
    """Many chains of 50 samples, averaged here and on a cluster that is started here: memory of the
    command, score."""
    (folder / "text.txt").write_text(SENTENCE * 200)  # 3,200 samples read all of its test split
    found: dict[str, Any] = {"samples_each": 50}
    for chains in (8, 64):
        out = untrained_chains(folder, chains)
        found[str(chains)] = {on: evaluated(out, on) for on in ("local", "ray")}
    return found


def untrained_chains(folder: Path, chains: int) -> Path:
    """A folder of chains whose samples are random weights."""
    out = folder / f"chains-{chains}"
    made = start_chains(recipe_of(folder, 8), out, chains)
    model = start(recipe_of(folder, 8), folder / f"one-{chains}").model
    for number, chain in enumerate(made.chains):
        torch.manual_seed(number)
        store = chain.store()
        for step in range(50):
            for parameter in model.parameters():
                nn.init.normal_(parameter, std=0.1)
            store.append(model, step)
    return out


def evaluated(out: Path, on: str) -> dict[str, float]:
    """By the command, in a process of its own."""
    words = [sys.executable, "-m", "langevin", "evaluate", str(out), "--on", on, "--json"]
    began = time.perf_counter()
    alone = os.environ | {"RAY_ADDRESS": "local"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=alone)
    assert process.stdout
    said = json.loads(process.stdout.read())
    usage = os.wait4(process.pid, 0)[2]
    return {"bytes": usage.ru_maxrss * 1024, "seconds": time.perf_counter() - began, "nll": said["averaged"]["nll"]}


def measure_check(folder: Path) -> dict[str, Any]:
    """Foretold by costs of the same minutes, and taken: three chains of the first shape, one after
    the other."""
    hidden = next(iter(SHAPES.values()))
    foretold = Costs(**measure_costs(folder)[next(iter(SHAPES))])
    made = start_chains(recipe_of(folder, hidden), folder / "three", 3)
    began = time.perf_counter()
    resume_chains(made, 1)
    taken = time.perf_counter() - began
    progress = made.progress()
    assert progress
    plan = Plan(chains=3, slots=1, steps=progress.step // 3, samples=len(made.store()) // 3)
    outcome = simulate(foretold, plan)
    return {"steps": plan.steps, "samples": plan.samples, "foretold": outcome.seconds, "taken": taken,
            "ratio": taken / outcome.seconds}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "costs": measure_costs, "gloo": measure_gloo, "store": measure_store, "chains": measure_chains,
    "check": measure_check,
}


def main(asked: list[str]) -> None:
    if unknown := [name for name in asked if name not in PARTS]:
        sys.exit(f"expected parts among {', '.join(PARTS)}, got {', '.join(unknown)}")
    record: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, measure in PARTS.items():
        if name not in record or name in asked:
            with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
                record[name] = measure(Path(folder))
            record["machine"] = {"processor": processor_name(), "cores": os.cpu_count(), "torch": torch.__version__,
                                 "system": platform.system()}
            write_json(RESULTS, record)


if __name__ == "__main__":
    main(sys.argv[1:])
