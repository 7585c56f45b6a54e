"""image features, then words → logits of the next word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .dropout import Dropout, WordDropout
from .recurrent import Recurrent, State


class Captioner(nn.Module):
    """A language model whose first input is the image (Vinyals et al. 2015).

        x₀ = W·(v/rms(v)) + b,   x_t = embedding of word t,   h_t = LSTM(x_t, h_{t−1}),   logits_t = U·h_t + d

    Each feature vector v is divided by its root mean square, so that the features of any network start the model at
    the scale of its word vectors; there is no other non-linearity before the recurrent layer, and nothing depends on
    the rest of the batch. What the image step itself would predict is not used: the first word follows `<start>`.
    """

    def __init__(
        self, width: int, vocabulary: int, *, cell: str, embed: int, hidden: int, layers: int, dropout: float = 0.0,
        dropout_kind: str = "naive", dropconnect: float = 0.0, tied: bool = False,
    ) -> None:
        super().__init__()
        self.image = nn.Linear(width, embed)
        self.embedding = nn.Embedding(vocabulary, embed)
        self.recurrent = Recurrent(
            cell, embed, hidden, layers, dropout=dropout, dropout_kind=dropout_kind, dropconnect=dropconnect
        )
        self.output = nn.Linear(hidden, vocabulary)
        if tied:
            self.output.weight = self.embedding.weight
        self.words = WordDropout(dropout if dropout_kind == "gal" else 0.0)
        self.dropout = Dropout(dropout, dropout_kind)

    def forward(self, features: Tensor, tokens: Tensor) -> Tensor:
        """[rows, width] and [rows, time] from `<start>` on → logits [rows, time, vocabulary] of the next words."""
        logits: Tensor = self.output(self.hidden(features, tokens))
        return logits

    def hidden(self, features: Tensor, tokens: Tensor) -> Tensor:
        """What the output layer sees: [rows, time, hidden]. Apart, so that padding need not pass the softmax."""
        vectors = self.words(self.embedding(tokens), tokens, self.embedding.num_embeddings)
        first = self.see(features)[:, None].to(vectors.dtype)
        states, _ = self.recurrent(self.dropout(torch.cat([first, vectors], 1)))
        dropped: Tensor = self.dropout(states[:, 1:])
        return dropped

    def begin(self, features: Tensor) -> list[State]:
        """The state of each layer after the image: where decoding starts. Dropout is for training, not for this."""
        carry: list[State] = self.recurrent(self.see(features)[:, None])[1]
        return carry

    def step(self, tokens: Tensor, carry: list[State]) -> tuple[Tensor, list[State]]:
        """One word of each row → logits [rows, vocabulary] of the next, and the new state."""
        states, carry = self.recurrent(self.embedding(tokens)[:, None], carry)
        return self.output(states[:, 0]), carry

    def see(self, features: Tensor) -> Tensor:
        """[rows, width] → [rows, embed]."""
        seen: Tensor = self.image(to_unit_scale(features))
        return seen


def to_unit_scale(features: Tensor) -> Tensor:
    """v / rms(v), row by row; a row of zeros stays."""
    return features / features.square().mean(-1, keepdim=True).sqrt().clamp_min(1e-8)
