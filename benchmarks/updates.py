"""Parts of a step on their own: the update of one large tensor, and an embedding with ever more
rows."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch

from langevin import SGLD

from .contenders import OURS, PLAIN_EVERY, POSTERIOR, TORCH, Make
from .timing import Contender, Turn, timed

WIDTH, TOKENS = 200, 640
ROWS = (10_000, 100_000, 1_000_000)
SIZES = (4_650_000, 20_000_000)


def update_alone(make: Make, grad: torch.Tensor) -> Turn:
    """`step` of an optimiser on one tensor whose gradient stands still and is shared by all."""
    parameter = torch.nn.Parameter(torch.zeros_like(grad))
    parameter.grad = grad
    return timed(make([parameter]).step)


def update_contenders(weights: int) -> list[Contender]:
    """Noise + update of every sampler, torch's updates without noise, and torch's noise without an
    update."""
    held, grad = torch.empty(weights), torch.full((weights,), 1e-3)
    made = [
        Contender("normal_", timed(held.normal_)),
        Contender("normal_, new memory", timed(lambda: torch.empty(weights).normal_())),
    ]
    for forms in TORCH.values():
        made += [Contender(name, update_alone(make, grad)) for name, make in forms]
    for name, make in OURS.items():
        made.append(Contender(name, update_alone(partial(make, fused=True), grad)))
        made.append(Contender(f"{name} plain", update_alone(partial(make, fused=False), grad), PLAIN_EVERY))
    return made


def embedding_rows(rows: int) -> Turn:
    """The embedding's part of an SGLD step: catch up, look up, sparse backward, update. New tokens
    at each step."""
    embedding = torch.nn.Embedding(rows, WIDTH, sparse=True)
    sampler: Any = SGLD(embedding.parameters(), lr=1e-2, **POSTERIOR)
    sampler.attach(embedding)
    generator = torch.Generator().manual_seed(0)
    upstream = torch.full((TOKENS, WIDTH), 1e-3)

    def run(steps: int) -> float:
        tokens = torch.randint(rows, (steps, TOKENS), generator=generator)
        began = time.perf_counter()
        for batch in tokens:
            sampler.zero_grad()
            embedding(batch).backward(upstream)
            sampler.step()
        return time.perf_counter() - began

    return run


def row_contenders(quick: bool) -> list[Contender]:
    return [Contender(f"V={rows}", embedding_rows(rows // 100 if quick else rows)) for rows in ROWS]
