"""padded sentences → logits of the classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .dropout import Dropout, WordDropout
from .recurrent import Recurrent


class SentenceClassifier(nn.Module):
    """Embedding, recurrent stack, the last states of all directions side by side, a linear layer.

    What stands in a row beyond its length never changes its logits. A sentence of no words has nothing to go by: its
    logits are the logarithms of the classes' shares in training, `log_prior`, whatever the weights; the likelihood of
    such a sentence is then a constant, and training and prediction agree.
    """

    log_prior: Tensor

    def __init__(
        self, vocabulary: int, classes: int, *, cell: str, embed: int, hidden: int, layers: int,
        bidirectional: bool = True, dropout: float = 0.0, dropout_kind: str = "naive",
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embed)
        self.recurrent = Recurrent(
            cell, embed, hidden, layers, bidirectional=bidirectional, dropout=dropout, dropout_kind=dropout_kind,
        )
        self.output = nn.Linear(self.recurrent.outputs, classes)
        self.words = WordDropout(dropout if dropout_kind == "gal" else 0.0)
        self.dropout = Dropout(dropout, dropout_kind)
        self.register_buffer("log_prior", torch.zeros(classes).log_softmax(0))

    def set_prior(self, counts: Tensor) -> None:
        """The shares of the classes in training; one that training lacks counts as half a sentence, not as never."""
        shares = counts.double().clamp(min=0.5)
        self.log_prior.copy_((shares / shares.sum()).log())

    @torch.no_grad()
    def set_vectors(self, vectors: Tensor, *, trained: bool) -> None:
        """Start the embedding at these vectors, and train them or leave them as they are."""
        self.embedding.weight.copy_(vectors)
        self.embedding.weight.requires_grad_(trained)

    def features(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """[rows, time] and the length of each row → the last states, [rows, directions · hidden]."""
        vectors = self.words(self.embedding(tokens), tokens, self.embedding.num_embeddings)
        _, states = self.recurrent(self.dropout(vectors), lengths=lengths)
        last: Tensor = states[-1][0]
        return last.transpose(0, 1).flatten(1)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """[rows, time] and the length of each row → logits [rows, classes]."""
        states = self.dropout(self.features(tokens, lengths)[:, None])[:, 0]
        return torch.where((lengths > 0)[:, None], self.output(states), self.log_prior)
