"""Items of about the same length → batches, whose padding is small; a function of (seed, epoch, index).

Each epoch shuffles all items, lays them into pools of some batches, sorts each pool by length, cuts it into batches
and shuffles those. More pools mix more and pad more: as many are taken as keep padding under PADDED of all steps. The
paper's sets get from one (CR, MPQA: a full sort) to eleven (MR).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .spelling import PADDING

PADDED = 0.08
"""Share of padding that is allowed when the number of pools is chosen (in the first epoch; others differ by little)."""

Rows = tuple[Tensor, Tensor]
"""Tokens [rows, longest], padded, and the length of each row."""


class Buckets:
    """Every item once an epoch, in batches whose sizes differ by at most one (so that no batch counts for more)."""

    def __init__(self, lengths: Tensor, batch_size: int, seed: int) -> None:
        self.lengths, self.seed = lengths, seed
        self.count = -(-len(lengths) // batch_size)
        self.pools = max(1, self.count // 10)
        while self.pools > 1 and self.padding(0) > PADDED:
            self.pools -= 1
        self._epoch, self._plan = -1, list[Tensor]()

    def __len__(self) -> int:
        return self.count

    def batch(self, epoch: int, index: int) -> Tensor:
        """The numbers of the items in one batch."""
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, self.plan(epoch)
        return self._plan[index]

    def plan(self, epoch: int) -> list[Tensor]:
        """All batches of an epoch."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.lengths), generator=generator)
        batches: list[Tensor] = []
        edges = [len(order) * b // self.count for b in range(self.count + 1)]
        for pool in range(self.pools):
            first, last = self.count * pool // self.pools, self.count * (pool + 1) // self.pools
            members = order[edges[first] : edges[last]]
            members = members[self.lengths[members].argsort(stable=True)]
            batches += [members[edges[b] - edges[first] : edges[b + 1] - edges[first]] for b in range(first, last)]
        return [batches[b] for b in torch.randperm(self.count, generator=generator)]

    def padding(self, epoch: int) -> float:
        """Which share of the steps of an epoch is padding."""
        longest = [max(1, int(self.lengths[members].max())) * len(members) for members in self.plan(epoch)]
        return 1 - int(self.lengths.sum()) / sum(longest)


def lengths_of(sentences: Sequence[Tensor]) -> Tensor:
    return torch.tensor([len(sentence) for sentence in sentences])


def pad(sentences: Sequence[Tensor]) -> Rows:
    """Rows as long as the longest, at least one step."""
    lengths = lengths_of(sentences)
    tokens = torch.full((len(sentences), max(1, int(lengths.max()))), PADDING)
    for row, sentence in zip(tokens, sentences, strict=True):
        row[: len(sentence)] = sentence
    return tokens, lengths


def by_length(sentences: Sequence[Tensor], rows: int, steps: int) -> list[list[int]]:
    """For evaluation: all sentences sorted by length, at most `rows` in a batch and about `steps` steps in all."""
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    batches: list[list[int]] = []
    for number in order:
        longest = max(1, len(sentences[number]))
        if not batches or len(batches[-1]) >= rows or (len(batches[-1]) + 1) * longest > max(steps, longest):
            batches.append([])
        batches[-1].append(number)
    return batches
