"""Rivals that do not learn by gradients: counts of n-grams, and a compressor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from langevin.models.counts import Counts, OrderChoice, choose_order
from langevin.models.counts_reader import CountsReader

from .text_sets import Splits, TextSet

PPMD_ORDERS = (6, 8, 12, 16, 24)
PPMD_MEMORY = 256 * 2**20


def chosen_counts(data: Splits, chosen: TextSet) -> OrderChoice:
    """Of the training text, with the order that validation prefers."""
    return choose_order([data.train], [data.valid], data.size, chosen.orders,
                        start=[data.vocabulary.start])


class CountsPredictor:
    """Counts, row beside row."""

    def __init__(self, counts: Counts) -> None:
        self.counts, self.size = counts, counts.vocabulary
        self.weights, self.sizes = torch.ones(1, dtype=torch.float64), [1]
        self.reader: CountsReader = counts.reader()

    def begin(self, befores: Sequence[Tensor]) -> None:
        readers = [self.counts.reader() for _ in befores]
        for reader, before in zip(readers, befores, strict=True):
            if len(before):
                reader.read(before[None])
        self.reader = readers[0]
        for reader in readers[1:]:
            self.reader.join(reader)

    def foresee(self, tokens: Tensor) -> Tensor:
        each = []
        for column in tokens.T:
            self.reader.read(column[:, None])
            each.append(self.reader.foresee())
        return torch.stack(each, 2)


def ppmd_nll(before: bytes, text: bytes, order: int) -> float:
    """Nats a byte that PPMd needs for a text after what stands before it."""
    import pyppmd

    def bits(raw: bytes) -> int:
        return 8 * len(pyppmd.compress(raw, max_order=order, mem_size=PPMD_MEMORY, variant="H"))

    return (bits(before + text) - bits(before)) / len(text) * math.log(2)
