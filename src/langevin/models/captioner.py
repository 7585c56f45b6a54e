"""Image features, then words → logits of the next word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .dropout import Dropout, WordDropout
from .recurrent import Recurrent, State


class Captioner(nn.Module):
    """A language model that has seen an image: as its first input, or as its first state.

        image_as="word"   x₀ = W·(v − m)/s + b, the first input (Vinyals et al. 2015)
        image_as="state"  (h₀, c₀) = W·(v − m)/s + b of every layer, h₀ through tanh

        x_t = embedding of word t,   h_t = LSTM(x_t, h_{t−1}),   logits_t = U·h_t + d

    m is the mean feature vector of the training images and s is such that ‖(v − m)/s‖² is the
    number of outputs of W on average: constants that are kept with the weights, so that nothing
    depends on the rest of a batch. Without m the image is lost: features are positive, a
    preconditioned step moves all 2048 weights of a unit the same way, x₀ grows by lr·Σv ≈ 1 a step
    and saturates the gates alike for every image (Flickr8k, 160 steps of RMSprop, validation nll
    3.31 with v/rms(v), unmoved when the images are permuted; 3.19 with m). s matters little: a
    third of it or three times as much, and one s for each feature, are within 0.01. What the image
    step itself would predict is not used: the first word follows `<start>`.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        width: int,
        vocabulary: int,
        *,
        cell: str,
        embed: int,
        hidden: int,
        layers: int,
        dropout: float = 0.0,
        dropout_kind: str = "naive",
        tied: bool = False,
        image_as: str = "word",
    ) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("spread", torch.ones(1))
        self.image_as, self.hidden_size = image_as, hidden
        parts = 2 if cell == "lstm" else 1
        self.image = nn.Linear(width, embed if image_as == "word" else layers * parts * hidden)
        self.embedding = nn.Embedding(vocabulary, embed)
        self.recurrent = Recurrent(
            cell, embed, hidden, layers, dropout=dropout, dropout_kind=dropout_kind
        )
        self.output = nn.Linear(hidden, vocabulary)
        if tied:
            self.output.weight = self.embedding.weight
        self.words = WordDropout(dropout if dropout_kind == "gal" else 0.0)
        self.dropout = Dropout(dropout, dropout_kind)

    def forward(self, features: Tensor, tokens: Tensor) -> Tensor:
        """Logits [rows, time, vocabulary] of the next words.

        Features are [rows, width], tokens [rows, time] from `<start>` on.
        """
        logits: Tensor = self.output(self.hidden(features, tokens).contiguous())
        return logits

    def hidden(self, features: Tensor, tokens: Tensor) -> Tensor:
        """What the output layer sees: [rows, time, hidden].

        Apart, so that padding need not pass the softmax.
        """
        vectors = self.words(self.embedding(tokens), tokens, self.embedding.num_embeddings)
        if self.image_as == "state":
            states, _ = self.recurrent(self.dropout(vectors), self.begin(features))
        else:
            first = self.see(features)[:, None].to(vectors.dtype)
            states = self.recurrent(self.dropout(torch.cat([first, vectors], 1)))[0][:, 1:]
        dropped: Tensor = self.dropout(states)
        return dropped

    def begin(self, features: Tensor) -> list[State]:
        """The state of each layer after the image: where decoding starts.

        Dropout is for training, not for this.
        """
        seen = self.see(features)
        if self.image_as == "state":
            return states_of(seen, self.hidden_size, self.recurrent.cell)
        carry: list[State] = self.recurrent(seen[:, None])[1]
        return carry

    def step(self, tokens: Tensor, carry: list[State]) -> tuple[Tensor, list[State]]:
        """One word of each row → logits [rows, vocabulary] of the next, and the new state."""
        states, carry = self.recurrent(self.embedding(tokens)[:, None], carry)
        return self.output(states[:, 0]), carry

    def see(self, features: Tensor) -> Tensor:
        """[rows, width] → [rows, embed], or all parts of the first state side by side."""
        seen: Tensor = self.image((features - self.centre) / self.spread)
        return seen

    def centre_on(self, features: Tensor) -> None:
        """Take m and s from these images, those of the training split."""
        self.centre.copy_(features.mean(0))
        spread = ((features - self.centre).square().sum(1).mean() / self.image.out_features).sqrt()
        self.spread.fill_(spread if spread > 0 else 1.0)


def states_of(seen: Tensor, hidden: int, cell: str) -> list[State]:
    """[…, rows, layers × parts × hidden] → of each layer its parts, […, 1, rows, hidden]."""
    parts = [part.unsqueeze(-3).contiguous() for part in torch.split(seen, hidden, -1)]
    if cell != "lstm":
        return [(part.tanh(),) for part in parts]
    return [(h.tanh(), c) for h, c in zip(parts[::2], parts[1::2], strict=True)]
