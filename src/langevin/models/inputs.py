"""What a classifier reads beside trained words: frozen vectors, characters, states of an
encoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.characters import BUCKETS, NONE


class FrozenVectors(nn.Module):
    """Word vectors that stay as they are, through a projection that is trained."""

    table: Tensor

    def __init__(self, words: int, width: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(words, width, dtype=torch.float16))
        self.project = nn.Linear(width, outputs)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """[rows, time] → [rows, time, outputs], and which words have a vector at all."""
        vectors = self.table[words].float()
        return self.project(vectors), (vectors != 0).any(-1, keepdim=True)


class HashedCharacters(nn.Module):
    """Σ of the vectors of a word's n-grams, over the root of their number."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(BUCKETS + 1, outputs)

    def forward(self, grams: Tensor) -> Tensor:
        """[rows, time, n-grams] → [rows, time, outputs]."""
        there = (grams != NONE).float()
        vectors = (self.embedding(grams) * there[..., None]).sum(-2)
        total: Tensor = vectors / there.sum(-1, keepdim=True).clamp(min=1).sqrt()
        return total


class EncoderStates(nn.Module):
    """tanh of a projection of states, each brought to mean 0 and variance 1."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, outputs)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """[rows, time, width] → [rows, time, outputs], and the states as they went in."""
        whole = F.layer_norm(states.float(), states.shape[-1:])
        return self.project(whole).tanh(), whole
