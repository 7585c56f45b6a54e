"""padded sentences → logits of the classes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from .dropout import Dropout, WordDropout
from .inputs import EncoderStates, FrozenVectors, HashedCharacters
from .readout import Readout
from .recurrent import Recurrent


class SentenceClassifier(nn.Module):
    """What is known of each word side by side, recurrent layers, a readout, a linear layer.

    A word has a trained vector of `embed` numbers, a projection of `vectors` frozen ones, and
    `characters` numbers for its n-grams where it has no frozen vector; 0 leaves either out. Instead
    of words, `states` numbers of an encoder may come in for each of its tokens. `project` is the
    width to which what is frozen is brought.

    What stands in a row beyond its length never changes its logits. A sentence of no words has
    nothing to go by: its logits are the logarithms of the classes' shares in training, `log_prior`,
    whatever the weights; the likelihood of such a sentence is then a constant, and training and
    prediction agree.
    """

    log_prior: Tensor

    def __init__(
        self, vocabulary: int, classes: int, *, cell: str, embed: int, hidden: int, layers: int,
        bidirectional: bool = True, dropout: float = 0.0, dropout_kind: str = "naive",
        vectors: int = 0, states: int = 0, project: int = 0, characters: int = 0,
        readout: Sequence[str] = ("last",),
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embed) if embed else None
        self.frozen = FrozenVectors(vocabulary, vectors, project) if vectors else None
        self.characters = HashedCharacters(characters) if characters else None
        self.states = EncoderStates(states, project) if states else None
        width = embed + characters + (project if vectors or states else 0)
        self.recurrent = Recurrent(
            cell, width, hidden, layers, bidirectional=bidirectional, dropout=dropout,
            dropout_kind=dropout_kind,
        )
        self.readout = Readout(readout, self.recurrent.outputs, states or width)
        self.output = nn.Linear(self.readout.width, classes)
        self.words = WordDropout(dropout if dropout_kind == "gal" else 0.0)
        self.dropout = Dropout(dropout, dropout_kind)
        self.register_buffer("log_prior", torch.zeros(classes).log_softmax(0))

    def set_prior(self, counts: Tensor) -> None:
        """The shares of the classes in training; one that training lacks counts as half a sentence,
        not as never."""
        shares = counts.double().clamp(min=0.5)
        self.log_prior.copy_((shares / shares.sum()).log())

    @torch.no_grad()
    def set_vectors(self, vectors: Tensor, *, trained: bool) -> None:
        """Start the embedding at these vectors, and train them or leave them as they are."""
        if self.embedding is None:
            raise LangevinError("expected a classifier with an embedding to set vectors in, got "
                                "one without; give it embed")
        self.embedding.weight.copy_(vectors)
        self.embedding.weight.requires_grad_(trained)

    def set_table(self, table: Tensor) -> None:
        """The vectors that stay as they are, [words, numbers]."""
        if self.frozen is None:
            raise LangevinError("expected a classifier that reads frozen vectors, got one that "
                                "does not; give it vectors and project")
        self.frozen.table.copy_(table)

    def inputs(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """What the recurrent layers get, [rows, time, width], and what it was made of."""
        if self.states is not None:
            projected, whole = self.states(rows)
            return projected, whole
        tokens = rows if self.characters is None else rows[..., 0]
        parts = list[Tensor]()
        if self.embedding is not None:
            parts.append(
                self.words(self.embedding(tokens), tokens, self.embedding.num_embeddings)
            )
        known: Tensor | None = None
        if self.frozen is not None:
            projected, known = self.frozen(tokens)
            parts.append(projected)
        if self.characters is not None:
            spelled = self.characters(rows[..., 1:])
            parts.append(spelled if known is None else spelled * ~known)
        together = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        return together, together

    def features(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Padded rows and the length of each → what is read out, [rows, width]."""
        vectors, whole = self.inputs(rows)
        outputs, states = self.recurrent(self.dropout(vectors), lengths=lengths)
        found: Tensor = self.readout(outputs, states[-1][0], whole, lengths)
        return found

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Padded rows and the length of each → logits [rows, classes].

        Rows are [rows, time] numbers of words, [rows, time, 1 + n-grams] with those of characters,
        or [rows, time, states].
        """
        found = self.dropout(self.features(rows, lengths)[:, None])[:, 0]
        return torch.where((lengths > 0)[:, None], self.output(found), self.log_prior)
