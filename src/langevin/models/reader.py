"""The one interface of what foresees tokens, whatever it is made of: samples, counts, a pool."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Reader(Protocol):
    """Reads rows of tokens side by side and tells, part by part, what may come next.

    A part is one draw of what foresees: a sample of the weights, or the counts. The prediction is
    the mixture of the parts.
    """

    @property
    def weights(self) -> Tensor:
        """The share of each part, [parts, rows]; sums to one over the parts of each row."""

    def begin(self, rows: int, given: Tensor | None = None) -> None:
        """Nothing is read but the level's start token; `given` are features of an image."""

    def foresee(self) -> Tensor:
        """log p of all tokens that may come next, [parts, rows, V]."""

    def read(self, tokens: Tensor) -> Tensor:
        """Read on, [rows, n]: log p of each token given those before it, [parts, rows, n]."""

    def foresee_along(self, tokens: Tensor) -> Tensor:
        """Read on as `read` does, but tell log p of all tokens at each place, [parts, rows, n, V].

        For short chunks: memory grows with n·V.
        """

    def take(self, rows: Tensor) -> None:
        """Go on with these rows, some perhaps twice (beam search), in this order."""

    def join(self, other: Reader) -> None:
        """The rows of another reader of the same kind come after ours."""


def step_by_step(reader: Reader, tokens: Tensor) -> Tensor:
    """`foresee_along` of a reader that has no faster way."""
    pieces = [reader.foresee()[:, :, None][:, :, :0]]
    for column in tokens.unbind(1):
        pieces.append(reader.foresee()[:, :, None])
        reader.read(column[:, None])
    return torch.cat(pieces, 2)
