"""One run that measures everything, interleaved, and judges the ratios: `make bench`."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from langevin.files import write_atomic
from langevin.process import available_cores, prepare_process
from langevin.store.manifest import commit, processor_name

from .ceilings import (
    Measured,
    product_contender,
    share_of_bandwidth,
    share_of_gemm,
    stream_contenders,
    take_gbytes,
    take_gflops,
)
from .contenders import our_steps, parts, torch_steps
from .epochs import EPOCH_PAIRS, epoch_contenders
from .processes import import_contenders, startup_contenders
from .report import draw, show, write_page
from .shapes import QUICK, SHAPES
from .timing import interleave
from .updates import SIZES, row_contenders, update_contenders
from .verdicts import required_ratios
from .worker import ROOT, Worker

messages = Console(stderr=True, highlight=False)


def main() -> None:
    options = parse()
    torch.set_num_threads(1 if options.quick else available_cores())
    if options.quick:
        os.environ["OMP_NUM_THREADS"] = "1"  # of the processes to come
    prepare_process()  # for everybody: page faults would drown the differences
    began, load = time.monotonic(), os.getloadavg()[0]
    if load > 0.5 and not options.quick:
        messages.print(f"other processes keep {load:.1f} cores busy; all times will be noisy", style="yellow")
    workers, peers = open_workers(options)
    try:
        results = measure(options, workers)
    finally:
        for worker in workers:
            worker.close()
    versions = {name: version(name) for name in ("langevin", "torch", "numpy", "numba")}
    for worker in workers:
        versions = worker.versions | versions
    results = {
        "quick": options.quick, "peers": peers, "rounds": options.rounds, "threads": torch.get_num_threads(),
        "machine": {"processor": processor_name(), "cores": available_cores(), "system": platform.system(),
                    "load": load},
        "versions": versions | {"python": platform.python_version()}, "commit": commit(),
        "minutes": (time.monotonic() - began) / 60, "ratios": required_ratios(results), **results,
    }  # fmt: skip
    publish(results, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="tiny networks: it runs, its times mean nothing")
    parser.add_argument("--no-peers", action="store_true", help="leave out posteriors and blackjax")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers", help="their environment")
    parser.add_argument("--epoch-pairs", action="store_true", help="whole epochs of recipes too (many minutes)")
    parser.add_argument("--rounds", type=int, help="interleaved repetitions (11; 2 with --quick)")
    parser.add_argument("--seconds", type=float, help="for one turn of one contender (0.4; 0.01 with --quick)")
    parser.add_argument("--output", type=Path, help="JSON file (results/bench.json; none with --quick)")
    parser.add_argument("--docs", type=Path, help="folder of speed.md and speed.png (docs; none with --quick)")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 11)
    options.seconds = options.seconds or (0.01 if options.quick else 0.4)
    if not options.quick:
        options.output = options.output or ROOT / "results" / "bench.json"
        options.docs = options.docs or ROOT / "docs"
    return options


def open_workers(options: argparse.Namespace) -> tuple[list[Worker], str]:
    """A sleeping process for each peer, and a word about them."""
    python = options.peers / "bin" / "python"
    if options.no_peers:
        return [], "left out"
    if not python.exists():
        messages.print("the peers have no environment and are left out; 'make peers' builds it")
        return [], "no environment"
    workers: list[Worker] = []
    for module in ("peers_posteriors", "peers_blackjax"):
        try:
            workers.append(Worker(python, module, available_cores()))
        except RuntimeError as error:
            messages.print(f"{module} is left out: {error}")
    return workers, "measured" if len(workers) == 2 else "not all could be started"


def measure(options: argparse.Namespace, workers: list[Worker]) -> dict[str, Any]:
    """Every section, one after the other; contenders are interleaved within a section."""
    shapes = QUICK if options.quick else SHAPES
    turn = {"rounds": options.rounds, "seconds": options.seconds}
    ceilings: dict[str, dict[str, float]] = {"gflops": {}, "gbytes": {}}
    steps: dict[str, Measured] = {}
    for shape in shapes.values():
        contenders = [product_contender(options.quick), *torch_steps(shape), *our_steps(shape)]
        contenders += [contender for worker in workers for contender in worker.contenders(shape)]
        steps[shape.name] = measured = interleave(contenders, say=saying(shape.name), **turn)
        ceilings["gflops"][shape.name] = best = take_gflops(measured, options.quick)
        for s in measured.values():
            s["of_gemm"] = share_of_gemm(shape, s["median"], best)
        for name, both in parts([c for c in contenders if c.name in measured]).items():
            measured[name] |= both
        del contenders
        gc.collect()  # some gigabytes of weights
    updates: dict[str, Measured] = {}
    for weights in SIZES:
        size = weights // 1000 if options.quick else weights
        contenders = [*stream_contenders(options.quick), *update_contenders(size)]
        updates[str(weights)] = measured = interleave(contenders, say=saying(f"update of {size}"), **turn)
        ceilings["gbytes"][str(weights)] = best = take_gbytes(measured, options.quick)
        for name, s in measured.items():
            s["of_bandwidth"] = share_of_bandwidth(name, size, s["median"], best)
    rows = interleave(row_contenders(options.quick), say=saying("embedding rows"), **turn)
    return {
        "ceilings": ceilings, "steps": steps, "updates": updates, "rows": rows,
        **in_fresh_processes(options), "epochs": epochs(options),
    }  # fmt: skip


def in_fresh_processes(options: argparse.Namespace) -> dict[str, Any]:
    """Import times, and training steps with and without start-up care."""
    shapes = QUICK if options.quick else SHAPES
    rounds = 1 if options.quick else options.rounds
    imports = import_contenders()
    for contender in imports:
        contender.run(0 if options.quick else 1)  # brings the files into the page cache
    made: dict[str, Any] = {"imports": interleave(imports, rounds=rounds, seconds=None, say=saying("imports"))}
    made["startup"] = {}
    for name in ["PTB-small"] if options.quick else ["PTB-small", "WP-LSTM"]:
        seen: dict[str, Any] = {}
        contenders = startup_contenders(shapes[name], 5 * options.seconds, seen)
        pair = interleave(contenders, rounds=rounds, seconds=None, say=saying(f"start-up, {name}"))
        flags = {"with": "1", "without": "0"}
        made["startup"][name] = {word: pair[word] | {"last": seen[flag]} for word, flag in flags.items()}
    return made


def epochs(options: argparse.Namespace) -> list[dict[str, Any]]:
    made = []
    for pair in EPOCH_PAIRS if options.epoch_pairs else []:
        measured = interleave(epoch_contenders(pair), rounds=3, seconds=None, say=saying(pair.title))
        made.append({"title": pair.title, **vars(pair), "measured": measured})
    return made


def publish(results: dict[str, Any], options: argparse.Namespace) -> None:
    if options.output:
        write_atomic(options.output, json.dumps(results, indent=1).encode())
    if options.docs:
        draw(options.docs / "speed.png", results)
        write_page(options.docs / "speed.md", results)
    if options.json:
        json.dump(results, sys.stdout)
    else:
        show(results, Console(highlight=False, width=None if sys.stdout.isatty() else 120))


def saying(section: str) -> Callable[[str], None]:
    return lambda text: messages.print(f"{section}: {text}")


if __name__ == "__main__":
    main()
