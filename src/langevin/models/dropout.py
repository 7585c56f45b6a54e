"""The dropout family. Masks come from torch's global generator, which the training loop seeds by the step.

*naive* (Zaremba et al. 2014): a new mask for every element of every step, on connections that do not recur.
*gal* (Gal & Ghahramani 2016): one mask for the whole sequence, another for each row of the batch, on inputs, recurrent
connections and outputs of every layer, and on whole word types in the embedding.
*gaussian* (Srivastava et al. 2014): multiply by N(1, p/(1−p)) instead, on the connections of *naive*.
All keep the expectation and are off in evaluation mode.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

KINDS = ("naive", "gal", "gaussian")


class Dropout(nn.Module):
    """Dropout of [rows, time, units]; `gal` keeps the mask along time."""

    def __init__(self, rate: float, kind: str = "naive") -> None:
        super().__init__()
        self.rate, self.kind = rate, kind

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if self.kind == "gaussian":
            return x * (1 + torch.randn_like(x) * math.sqrt(self.rate / (1 - self.rate)))
        if self.kind == "gal":
            return x * keep_mask(x[:, :1], self.rate)
        return x * keep_mask(x, self.rate)


class WordDropout(nn.Module):
    """Drop word types: an embedding row is zero for all its occurrences in a sequence, rows of the batch apart."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, vectors: Tensor, tokens: Tensor, types: int) -> Tensor:
        if not self.training or self.rate == 0:
            return vectors
        kept = keep_mask(vectors.new_empty(len(tokens), types), self.rate)
        return vectors * kept.gather(1, tokens)[..., None]


def keep_mask(like: Tensor, rate: float) -> Tensor:
    """0 with probability `rate`, else 1/(1−rate): multiplying by it keeps the expectation.

    From uniform numbers: torch's `bernoulli_` takes four times as long on a CPU.
    """
    kept = torch.rand(like.shape, device=like.device) >= rate
    return kept.to(like.dtype).div_(1 - rate)
