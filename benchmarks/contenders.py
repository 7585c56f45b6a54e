"""Full training steps of torch's optimisers and of our samplers, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from torch.nn import functional as F

from langevin import PSGLD, SGHMC, SGLD, SGNHT, Santa

from .shapes import NUM_DATA, Shape, batches, network
from .timing import Contender

Make = Callable[..., torch.optim.Optimizer]

TORCH: dict[str, list[tuple[str, Make]]] = {
    "SGD": [
        ("torch SGD", partial(torch.optim.SGD, lr=1e-2)),
        ("torch SGD fused", partial(torch.optim.SGD, lr=1e-2, fused=True)),
    ],
    "RMSprop": [
        ("torch RMSprop", partial(torch.optim.RMSprop, lr=1e-4)),
        # it has no fused form
        ("torch RMSprop foreach", partial(torch.optim.RMSprop, lr=1e-4, foreach=True)),
    ],
    "momentum": [
        ("torch momentum", partial(torch.optim.SGD, lr=1e-3, momentum=0.9)),
        ("torch momentum fused", partial(torch.optim.SGD, lr=1e-3, momentum=0.9, fused=True)),
    ],
    "Adam": [
        ("torch Adam", partial(torch.optim.Adam, lr=1e-4)),
        ("torch Adam fused", partial(torch.optim.Adam, lr=1e-4, fused=True)),
    ],
}
"""Each optimiser in the forms that torch offers; we compare with the faster one."""

POSTERIOR: dict[str, Any] = {"num_data": NUM_DATA, "prior_var": 1.0, "temperature": 1.0}
OURS: dict[str, Make] = {
    "SGLD": partial(SGLD, lr=1e-2, **POSTERIOR),
    "PSGLD": partial(PSGLD, lr=1e-4, **POSTERIOR),
    "SGHMC": partial(SGHMC, lr=1e-3, **POSTERIOR),
    "SGNHT": partial(SGNHT, lr=1e-3, **POSTERIOR),
    "Santa": partial(Santa, lr=1e-4, **POSTERIOR),
}
LAZY = ("SGLD", "PSGLD")
PLAIN_EVERY = 3
"""The plain updates take up to ten times as long; every third round is enough for them."""


class TrainingStep:
    """zero_grad, forward, cross-entropy, backward, update: a turn of the benchmark."""

    def __init__(self, shape: Shape, make: Make, *, sparse: bool = False) -> None:
        torch.manual_seed(0)
        self.model = network(shape, sparse=sparse)
        self.batches, self.number = batches(shape), 0
        self.optimiser: Any = make(self.model.parameters())
        self.sparse = sparse
        self.gradients: list[float] = []
        self.updates: list[float] = []
        if sparse and hasattr(self.optimiser, "attach"):
            self.optimiser.attach(self.model.embedding)

    def __call__(self, steps: int) -> float:
        began = time.perf_counter()
        for _ in range(steps):
            inputs, targets = self.batches[self.number % len(self.batches)]
            start = time.perf_counter()
            self.optimiser.zero_grad()
            F.cross_entropy(self.model(inputs).flatten(0, 1), targets.flatten()).backward()
            middle = time.perf_counter()
            self.optimiser.step()
            self.number += 1
            self.gradients.append(middle - start)
            self.updates.append(time.perf_counter() - middle)
        took = time.perf_counter() - began
        self.optimiser.zero_grad()  # twenty contenders, but only one set of gradients in memory
        return took


def parts(contenders: Sequence[Contender]) -> dict[str, dict[str, float]]:
    """Medians of the two parts of each step: the gradient, and the update right behind it. Dense
    rows only.

    The gradient is the same work for every contender, so that its differences are noise; lazy rows
    do part of their update within it.
    """
    made = {c.name: c.run for c in contenders if isinstance(c.run, TrainingStep) and not c.run.sparse}
    return {n: {"gradient": median(step.gradients), "update": median(step.updates)} for n, step in made.items()}


def torch_steps(shape: Shape) -> list[Contender]:
    made = [Contender(name, TrainingStep(shape, make)) for forms in TORCH.values() for name, make in forms]
    sparse = TrainingStep(shape, partial(torch.optim.SGD, lr=1e-2), sparse=True)
    return [*made, Contender("torch SGD, sparse rows", sparse)]


def our_steps(shape: Shape) -> list[Contender]:
    made = []
    for name, make in OURS.items():
        made.append(Contender(name, TrainingStep(shape, partial(make, fused=True))))
        made.append(Contender(f"{name} plain", TrainingStep(shape, partial(make, fused=False)), PLAIN_EVERY))
    lazy = [Contender(f"{name} lazy rows", TrainingStep(shape, OURS[name], sparse=True)) for name in LAZY]
    return [*made, *lazy]
