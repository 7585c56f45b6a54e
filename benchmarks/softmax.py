"""The softmax loss in one pass against torch's.

`python -m benchmarks.softmax [--threads 1] [--json FILE] [--quick]`.

Alone (logits → loss and their gradient) and within a training step of SGLD, on the networks of
`shapes.py`, float32 and bfloat16. Turns are interleaved, medians compared. With one thread the
clock is the CPU time of the process, which other work on the machine lengthens little; with more it
is the wall clock.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import langevin
from langevin.files import write_atomic
from langevin.models.softmax import cross_entropy
from langevin.process import prepare_process
from langevin.store.manifest import commit

from .shapes import NUM_DATA, QUICK, SHAPES, Shape, batches, network
from .timing import Contender, interleave, ratio, timed

Loss = Callable[[Tensor, Tensor], Tensor]
LOSSES: dict[str, Loss] = {"torch": F.cross_entropy, "ours": cross_entropy}
NAMES = ("PTB-small", "PTB-medium")


def alone(shape: Shape, loss: Loss, precision: torch.dtype) -> Callable[[], None]:
    """Loss and gradient of random logits, as they come from the output layer."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape.rows * shape.time, shape.vocabulary, generator=generator).to(precision).requires_grad_()
    targets = batches(shape)[0][1].flatten()

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            torch.autograd.grad(loss(logits, targets), logits)

    return step


def training(shape: Shape, loss: Loss, precision: torch.dtype) -> Callable[[], None]:
    """A whole step of SGLD."""
    torch.manual_seed(0)
    model = network(shape)
    sampler = langevin.SGLD(model.parameters(), lr=0.1, num_data=NUM_DATA, prior_var=1.0)
    source = itertools.cycle(batches(shape))

    def step() -> None:
        inputs, targets = next(source)
        sampler.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            found = loss(model(inputs).flatten(0, 1), targets.flatten())
        found.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        sampler.step()

    return step


def measure(shapes: dict[str, Shape], rounds: int, seconds: float, threads: int) -> dict[str, Any]:
    """Milliseconds of both, and torch's in units of ours."""
    clock = time.process_time if threads == 1 else time.perf_counter
    told: dict[str, Any] = {}
    for name, precision, (kind, make) in itertools.product(
        NAMES, (torch.float32, torch.bfloat16), {"alone": alone, "training step": training}.items()
    ):
        contenders = [Contender(who, timed(make(shapes[name], loss, precision), clock)) for who, loss in LOSSES.items()]
        measured = interleave(contenders, rounds=rounds, seconds=seconds)
        milliseconds = {who: 1e3 * own["median"] for who, own in measured.items()}
        told[f"{name}, {kind}, {str(precision).removeprefix('torch.')}"] = {
            "milliseconds": milliseconds, "torch_to_ours": ratio(measured["torch"], measured["ours"])
        }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="tiny networks; the times mean nothing")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    prepare_process()
    torch.set_num_threads(options.threads)
    measured = measure(QUICK if options.quick else SHAPES, options.rounds, 0.01 if options.quick else 0.5,
                       options.threads)
    told = {"threads": options.threads, "rounds": options.rounds, "commit": commit(), "quick": options.quick,
            "processor": torch.backends.cpu.get_cpu_capability(), "cases": measured}
    print(json.dumps(told, indent=1))
    if options.json:
        write_atomic(options.json, json.dumps(told, indent=1).encode())


if __name__ == "__main__":
    main()
