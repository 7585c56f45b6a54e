"""tokens → logits of the next token."""

from __future__ import annotations

from torch import Tensor, nn

from .recurrent import Recurrent, State


class LanguageModel(nn.Module):
    """Embedding, recurrent stack, softmax layer. Dropout acts on the connections that do not recur."""

    def __init__(
        self, vocabulary: int, *, cell: str, embed: int, hidden: int, layers: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embed)
        self.recurrent = Recurrent(cell, embed, hidden, layers, dropout=dropout)
        self.output = nn.Linear(hidden, vocabulary)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, carry: list[State] | None = None) -> tuple[Tensor, list[State]]:
        """[rows, time] → logits [rows, time, vocabulary] and the state after the last token."""
        hidden, carry = self.recurrent(self.dropout(self.embedding(tokens)), carry)
        return self.output(self.dropout(hidden)), carry
