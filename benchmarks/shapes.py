"""The three networks, their data and their cost. The JAX worker reads the shapes too, so torch is
imported late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

BATCHES = 16
"""Different random batches, in turn: rows of a lazy embedding must have steps to catch up with."""
NUM_DATA = 929_589
"""Tokens in the training part of Penn Treebank; sets the size of the noise, not the time."""


@dataclass(frozen=True)
class Shape:
    """An embedding, two LSTM layers and a softmax layer, on a batch of rows × time tokens."""

    name: str
    vocabulary: int
    hidden: int
    rows: int
    time: int
    layers: int = 2

    @property
    def weights(self) -> int:
        lstm = self.layers * (4 * self.hidden * 2 * self.hidden + 8 * self.hidden)
        return lstm + 2 * self.vocabulary * self.hidden + self.vocabulary

    @property
    def flops(self) -> float:
        """Of the matrix products of a training step: two per weight and token forward, four
        backward."""
        lstm = self.layers * 4 * self.hidden * 2 * self.hidden
        return 6.0 * self.rows * self.time * (lstm + self.hidden * self.vocabulary)


SHAPES = {
    s.name: s
    for s in (
        Shape("PTB-small", 10_000, 200, 32, 20),
        Shape("PTB-medium", 10_000, 650, 32, 20),
        Shape("WP-LSTM", 87, 128, 100, 100),
    )
}
QUICK = {s.name: s for s in (Shape("PTB-small", 300, 16, 4, 5), Shape("PTB-medium", 300, 24, 4, 5))}
"""The names of the real ones at a size that only shows that everything runs."""


def network(shape: Shape, *, sparse: bool = False) -> nn.Module:
    """tokens [rows, time] → logits, in plain torch: the same module for torch, for us and for
    posteriors."""
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(shape.vocabulary, shape.hidden, sparse=sparse)
            self.lstm = nn.LSTM(shape.hidden, shape.hidden, shape.layers, batch_first=True)
            self.output = nn.Linear(shape.hidden, shape.vocabulary)

        def forward(self, tokens: Tensor) -> Tensor:
            hidden, _ = self.lstm(self.embedding(tokens))
            logits: Tensor = self.output(hidden)
            return logits

    return Network()


def batches(shape: Shape) -> list[tuple[Tensor, Tensor]]:
    """Random inputs and targets."""
    import torch

    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(shape.vocabulary, (BATCHES, shape.rows, shape.time + 1), generator=generator)
    return [(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()) for batch in tokens]
