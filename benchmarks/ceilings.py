"""What the machine can do at best, in the same run: float32 matrix products and streams through
memory."""

from __future__ import annotations

from typing import Any

import torch

from .shapes import Shape
from .timing import Contender, timed

Measured = dict[str, dict[str, Any]]

BYTES = {
    "SGLD": 12, "PSGLD": 20, "SGHMC": 20, "SGNHT": 20, "Santa": 36, "torch SGD": 12, "torch SGD fused": 12,
    "torch RMSprop": 20, "torch RMSprop foreach": 20, "torch momentum": 20, "torch momentum fused": 20,
    "torch Adam": 28, "torch Adam fused": 28, "normal_": 4, "normal_, new memory": 4,
}
"""Bytes that an update of one float32 weight must move: each state read and written once, the
gradient read."""


PRODUCT = "matrix product"
STREAMS = {"copy": 8, "triad": 12, "update in place": 12}
"""Bytes that each stream moves per element."""
SIDE, LENGTH = 2048, 1 << 26


def product_contender(quick: bool) -> Contender:
    """A large matrix product, which takes part in every round of the training steps."""
    side = SIDE // 16 if quick else SIDE
    left, right, product = torch.rand(side, side), torch.rand(side, side), torch.empty(side, side)
    return Contender(PRODUCT, timed(lambda: torch.mm(left, right, out=product)))


def stream_contenders(quick: bool) -> list[Contender]:
    """A copy, a triad and an update in place over arrays far larger than any cache, in every round
    of the updates."""
    length = LENGTH // 1000 if quick else LENGTH
    a, b, c = torch.rand(length), torch.rand(length), torch.empty(length)
    return [
        Contender("copy", timed(lambda: c.copy_(a))),
        Contender("triad", timed(lambda: torch.add(a, b, alpha=0.5, out=c))),
        Contender("update in place", timed(lambda: c.add_(a, alpha=1e-9))),
    ]


def take_gflops(measured: Measured, quick: bool) -> float:
    """GFLOP/s of the matrix product, which leaves the list of contenders."""
    side = SIDE // 16 if quick else SIDE
    return 2 * side**3 / float(measured.pop(PRODUCT)["median"]) / 1e9


def take_gbytes(measured: Measured, quick: bool) -> float:
    """GB/s of the best of the three streams, which leave the list of contenders."""
    length = LENGTH // 1000 if quick else LENGTH
    return max(count * length / measured.pop(name)["median"] / 1e9 for name, count in STREAMS.items())


def share_of_gemm(shape: Shape, seconds: float, gflops: float) -> float:
    """FLOPs of a training step's matrix products over its time, as a share of the large product's
    rate."""
    return shape.flops / seconds / 1e9 / gflops


def share_of_bandwidth(name: str, weights: int, seconds: float, gbytes: float) -> float | None:
    """Bytes that the update must move over its time, as a share of the streams' rate; above 1 out
    of caches."""
    return None if name not in BYTES else BYTES[name] * weights / seconds / 1e9 / gbytes
