"""The dropout family. Masks come from torch's global generator, which the training loop seeds by
the step.

Where a batch is cut into pieces, each draws the masks of the whole batch and takes its own rows of
them (`masks_divided`): how a batch is divided changes no mask.

*naive* (Zaremba et al. 2014): a new mask for every element of every step, on connections that do
not recur.
*gal* (Gal & Ghahramani 2016): one mask for the whole sequence, another for each row of the batch,
on inputs, recurrent connections and outputs of every layer, and on whole word types in the
embedding.
*gaussian* (Srivastava et al. 2014): multiply by N(1, p/(1−p)) instead, on the connections of
*naive*. All keep the expectation and are off in evaluation mode.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import Tensor, nn

KINDS = ("naive", "gal", "gaussian")
divided: ContextVar[tuple[int, slice] | None] = ContextVar("divided", default=None)
"""Rows of the whole batch, and which of them are at hand; None where all are."""


@contextlib.contextmanager
def masks_divided(whole: int, own: slice) -> Iterator[None]:
    """Within this, what passes a network are these rows of a batch of so many."""
    token = divided.set((whole, own))
    try:
        yield
    finally:
        divided.reset(token)


class Dropout(nn.Module):
    """Dropout of [rows, time, units]; `gal` keeps the mask along time."""

    def __init__(self, rate: float, kind: str = "naive") -> None:
        super().__init__()
        self.rate, self.kind = rate, kind

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if self.kind == "gaussian":
            return x * (1 + normal_like(x) * math.sqrt(self.rate / (1 - self.rate)))
        if self.kind == "gal":
            return x * keep_mask(x[:, :1], self.rate)
        return x * keep_mask(x, self.rate)


class WordDropout(nn.Module):
    """Drop word types: an embedding row is zero for all its occurrences in a sequence, rows of the
    batch apart."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, vectors: Tensor, tokens: Tensor, types: int) -> Tensor:
        if not self.training or self.rate == 0:
            return vectors
        kept = keep_mask(vectors.new_empty(len(tokens), types), self.rate)
        return vectors * kept.gather(1, tokens)[..., None]


def keep_mask(like: Tensor, rate: float) -> Tensor:
    """0 with probability `rate`, else 1/(1−rate): multiplying by it keeps the expectation. The
    first dimension of
    `like` is the rows.

    From uniform numbers: torch's `bernoulli_` takes four times as long on a CPU.
    """
    whole, own = divided.get() or (len(like), slice(None))
    kept = torch.rand((whole, *like.shape[1:]), device=like.device)[own] >= rate
    return kept.to(like.dtype).div_(1 - rate)


def normal_like(x: Tensor) -> Tensor:
    """Standard normals in the shape of x, drawn in the order in which x lies in memory, as torch
    does."""
    if (found := divided.get()) is None:
        return torch.randn_like(x)
    # Of one row that lies step by step, rows and steps have the same stride; steps come first then.
    order = sorted(range(x.dim()), key=lambda dim: (x.stride(dim), dim), reverse=True)
    noise = torch.empty_permuted((found[0], *x.shape[1:]), order, dtype=x.dtype, device=x.device)
    return noise.normal_()[found[1]]
