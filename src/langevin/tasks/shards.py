"""A batch, or a split, cut into pieces of about as many rows each: over processes, and one after
another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from ..models.dropout import masks_divided


@dataclass(frozen=True)
class Shard:
    """The `number`-th of `of` pieces."""

    number: int = 0
    of: int = 1

    def span(self, rows: int) -> slice:
        """Which of so many rows are ours."""
        return slice(rows * self.number // self.of, rows * (self.number + 1) // self.of)

    def divided(self, pieces: int) -> list[Shard]:
        """The same rows in so many pieces."""
        return [Shard(self.number * pieces + piece, self.of * pieces) for piece in range(pieces)]

    @contextlib.contextmanager
    def cut(self, batch: tuple[Tensor, ...]) -> Iterator[tuple[Tensor, ...]]:
        """Our rows of a batch; within this they have the dropout masks that the whole would give
        them.

        Padding stays as it is in the whole, so that masks have its shape.
        """
        own = self.span(len(batch[0]))
        with masks_divided(len(batch[0]), own) if self.of > 1 else contextlib.nullcontext():
            yield tuple(part[own] for part in batch)


WHOLE = Shard()
