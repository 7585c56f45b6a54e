"""`Captioner` for S sets of weights at once; for decoding."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .captioner import Captioner, states_of
from .recurrent import State
from .stacked import STEPS, StackedEmbedding, StackedLinear, StackedRecurrent, product


class StackedCaptioner:
    """The methods of `Captioner` in evaluation mode; what they return has samples in front."""

    def __init__(self, model: Captioner, weights: Mapping[str, Tensor]) -> None:
        self.image_as, self.hidden_size = model.image_as, model.hidden_size
        self.centre, self.spread = weights["centre"][:, None], weights["spread"][:, None]
        self.image = StackedLinear(weights["image.weight"], weights["image.bias"])
        self.embedding = StackedEmbedding(weights["embedding.weight"])
        self.recurrent = StackedRecurrent.of(model.recurrent, weights, "recurrent.")
        self.output = StackedLinear(weights["output.weight"], weights["output.bias"])

    def forward(self, features: Tensor, tokens: Tensor) -> Tensor:
        """[rows, width] and [rows, time] → logits [S, rows, time, vocabulary]."""
        hidden, _ = self.recurrent(self.embedding(tokens), self.begin(features))
        return self.output(hidden)

    def begin(self, features: Tensor) -> list[State]:
        """The states after the image, each [S, 1, rows, hidden]."""
        seen = self.image((features - self.centre) / self.spread)
        if self.image_as == "state":
            return states_of(seen, self.hidden_size, self.recurrent.cell)
        return self.recurrent(seen[:, :, None])[1]

    def step(self, tokens: Tensor, carry: list[State]) -> tuple[Tensor, list[State]]:
        """One word of each row → logits [S, rows, vocabulary], and the new states.

        The rows of a beam share many words: the first layer multiplies each word once.
        """
        words, rows = torch.unique(tokens, return_inverse=True)
        x, after = self.embedding(words), []
        for number, ((w, u, b, c),) in enumerate(self.recurrent.layers):
            inputs = product(x, w, b)
            if number == 0:
                inputs = inputs.index_select(1, rows)
            state = STEPS[self.recurrent.cell](
                inputs, u, c, tuple(part[:, 0] for part in carry[number])
            )
            after.append(tuple(part[:, None] for part in state))
            x = state[0]
        return self.output(x), after
