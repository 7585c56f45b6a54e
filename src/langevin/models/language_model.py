"""tokens → logits of the next token."""

from __future__ import annotations

from torch import Tensor, nn

from .dropout import Dropout, WordDropout
from .recurrent import Recurrent, State


class LanguageModel(nn.Module):
    """Embedding, recurrent stack, softmax layer; `tied` shares the matrix of the first and the
    last."""

    def __init__(
        self, vocabulary: int, *, cell: str, embed: int, hidden: int, layers: int, dropout: float = 0.0,
        dropout_kind: str = "naive", tied: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embed)
        self.recurrent = Recurrent(
            cell, embed, hidden, layers, dropout=dropout, dropout_kind=dropout_kind
        )
        self.output = nn.Linear(hidden, vocabulary)
        if tied:
            self.output.weight = self.embedding.weight
        self.words = WordDropout(dropout if dropout_kind == "gal" else 0.0)
        self.dropout = Dropout(dropout, dropout_kind)

    def forward(self, tokens: Tensor, carry: list[State] | None = None) -> tuple[Tensor, list[State]]:
        """[rows, time] → logits [rows, time, vocabulary] and the state after the last token."""
        vectors = self.words(self.embedding(tokens), tokens, self.embedding.num_embeddings)
        hidden, carry = self.recurrent(self.dropout(vectors), carry)
        # in rows: torch would multiply a transposed tensor by a frozen weight row by row, up to six
        # times as long
        return self.output(self.dropout(hidden).contiguous()), carry
