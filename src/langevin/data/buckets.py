"""Items of about the same length → batches with little padding; by (seed, epoch, index) alone.

Each epoch shuffles all items, lays them into pools of some batches, sorts each pool by length, cuts
it into batches and shuffles those. More pools mix more and pad more: as many are taken as keep
padding under PADDED of all steps. The paper's sets get from one (CR, MPQA: a full sort) to eleven
(MR).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

PADDING = 0
"""Fills short rows of a batch. It is a word's number like any other: what stands after a row's
length is never read."""
PADDED = 0.08
"""Share of padding that is allowed when the number of pools is chosen, in the first epoch; others
differ by little."""
ROWS, STEPS = 256, 8192
"""Sentences, and words with padding, that are evaluated at once."""

Rows = tuple[Tensor, Tensor]
"""Tokens [rows, longest], padded, and the length of each row."""


class Buckets:
    """Every item once an epoch, in batches whose sizes differ by at most one.

    So no batch counts for more than another.
    """

    def __init__(self, lengths: Tensor, batch_size: int, seed: int) -> None:
        self.lengths, self.seed = lengths, seed
        self.count = -(-len(lengths) // batch_size)
        self.pools = max(1, self.count // 10)
        while self.pools > 1 and self.padding(0) > PADDED:
            self.pools -= 1
        self._epoch, self._plan = -1, list[Tensor]()

    def __len__(self) -> int:
        return self.count

    @property
    def fewest(self) -> int:
        """Items of the smallest batch."""
        return len(self.lengths) // self.count

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
            inner = [edge - edges[first] for edge in edges[first + 1 : last]]
            batches += members.tensor_split(inner)
        return [batches[b] for b in torch.randperm(self.count, generator=generator)]

    def padding(self, epoch: int) -> float:
        """Which share of the steps of an epoch is padding."""
        steps = sum(max(1, int(self.lengths[members].max())) * len(members)
                    for members in self.plan(epoch))
        return 1 - int(self.lengths.sum()) / steps


def lengths_of(sentences: Sequence[Tensor]) -> Tensor:
    return torch.tensor([len(sentence) for sentence in sentences])


def pad(sentences: Sequence[Tensor]) -> Rows:
    """Rows as long as the longest, at least one step; a step may be a number or several."""
    lengths, like = lengths_of(sentences), sentences[0]
    shape = (len(sentences), max(1, int(lengths.max())), *like.shape[1:])
    tokens = torch.full(shape, PADDING, dtype=like.dtype)
    for row, sentence in zip(tokens, sentences, strict=True):
        row[: len(sentence)] = sentence
    return tokens, lengths


def by_length(sentences: Sequence[Tensor], rows: int = ROWS, steps: int = STEPS) -> list[list[int]]:
    """For evaluation: numbers of the sentences, the short ones first.

    At most `rows` of them stand in a batch, with about `steps` steps in all.
    """
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    batches: list[list[int]] = []
    for number in order:
        longest = max(1, len(sentences[number]))
        room = min(rows, max(1, steps // longest))
        if not batches or len(batches[-1]) >= room:
            batches.append([])
        batches[-1].append(number)
    return batches


def in_length_order(
    sentences: Sequence[Tensor], use: Callable[[Tensor, Tensor], Tensor], dim: int = 0
) -> Tensor:
    """What `use` makes of padded batches of sentences, put back into the order of the sentences.

    `use` takes tokens and lengths and gives a tensor whose `dim` is the sentences.
    """
    order, pieces = list[int](), list[Tensor]()
    for members in by_length(sentences):
        pieces.append(use(*pad([sentences[number] for number in members])))
        order += members
    return torch.cat(pieces, dim).index_select(dim, torch.tensor(order).argsort())
