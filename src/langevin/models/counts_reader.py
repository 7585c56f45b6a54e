"""Counts as a reader: many texts side by side, or one that is counted while it is read."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..errors import LangevinError
from .reader import Reader, step_by_step

if TYPE_CHECKING:
    from .counts_table import CountedNgrams

log = logging.getLogger(__name__)


class CountsReader:
    """One part. With `adapt` it counts what it reads in a table of its own over the shared one,
    which may take `memory` bytes.

    `start` are the tokens that stand before every text, [1, n].
    """

    def __init__(
        self, shared: CountedNgrams, vocabulary: int, start: Tensor, memory: int, *, adapt: bool
    ) -> None:
        self.shared, self.vocabulary, self.start = shared, vocabulary, start
        self.memory, self.adapt = memory, adapt
        self.begin(1)

    @property
    def weights(self) -> Tensor:
        return torch.ones(1, len(self.place.lengths), dtype=torch.float64)

    def begin(self, rows: int, given: Tensor | None = None) -> None:
        """Every row stands behind the start token; what was counted while reading is forgotten."""
        from .counts_table import CountedNgrams, Place

        if given is not None:
            raise LangevinError("expected nothing to go by, as counts foresee texts alone, got "
                                "features; pass given=None")
        self.refuse_rows(rows)
        shared = self.shared
        self.edition, self.counting = shared.edition, self.adapt
        self.ngrams = CountedNgrams(shared.order, self.memory, shared) if self.adapt else shared
        self.place = Place(rows, shared.order)
        start = self.start.expand(rows, -1).contiguous()
        self.ngrams.read(self.place, start, self.vocabulary, scores=False,
                         counts=self.counting, start=start.shape[1])

    def foresee(self) -> Tensor:
        self.refuse_change()
        return self.ngrams.foresee(self.place, self.vocabulary)[None]

    def read(self, tokens: Tensor) -> Tensor:
        self.refuse_change()
        rest = check_tokens(tokens, len(self.place.lengths), self.vocabulary)
        pieces = []
        while True:
            log_p, done = self.ngrams.read(
                self.place, rest, self.vocabulary, counts=self.counting
            )
            pieces.append(log_p[:, :done])
            rest = rest[:, done:].contiguous()
            if not rest.shape[1]:
                return torch.cat(pieces, 1)[None]
            if not self.ngrams.grow():
                self.counting = False
                log.warning("counting while reading stops: %d MB are full", self.ngrams.bytes >> 20)

    def foresee_along(self, tokens: Tensor) -> Tensor:
        return step_by_step(self, tokens)

    def take(self, rows: Tensor) -> None:
        count = len(self.place.lengths)
        numbers = rows.numpy().astype(np.int64)
        if rows.dim() != 1 or ((numbers < 0) | (numbers >= count)).any():
            raise LangevinError(f"expected rows from 0 to {count - 1}, got {rows.tolist()}")
        self.refuse_rows(len(numbers))
        self.place.contexts = self.place.contexts[numbers]
        self.place.lengths = self.place.lengths[numbers]

    def join(self, other: Reader) -> None:
        if not isinstance(other, CountsReader) or other.shared is not self.shared:
            raise LangevinError("expected a reader of the same counts to join, got another; "
                                "make both by reader() of one")
        self.refuse_rows(len(self.place.lengths) + len(other.place.lengths))
        self.refuse_change()
        other.refuse_change()
        pairs = (self.place, other.place)
        self.place.contexts = np.concatenate([place.contexts for place in pairs])
        self.place.lengths = np.concatenate([place.lengths for place in pairs])

    def refuse_rows(self, rows: int) -> None:
        if self.adapt and rows != 1:
            raise LangevinError(f"expected one text to count while reading, got {rows} rows; "
                                f"read them one after the other, or with adapt=False")

    def refuse_change(self) -> None:
        if self.edition != self.shared.edition:
            raise LangevinError("expected the counts that reading began with, but more was "
                                "counted since; begin again")


def check_tokens(tokens: Tensor, rows: int, vocabulary: int) -> Tensor:
    """Tokens as the loop takes them; memory beyond the vocabulary is not ours."""
    if tokens.dim() != 2 or len(tokens) != rows or tokens.is_floating_point():
        raise LangevinError(f"expected integer tokens in {rows} rows, got {tokens.dtype} of "
                            f"shape {list(tokens.shape)}")
    if tokens.numel() and not 0 <= (worst := extreme(tokens)) < vocabulary:
        raise LangevinError(f"expected tokens from 0 to {vocabulary - 1}, got {worst}; "
                            f"counts know the vocabulary that they were learnt with")
    return tokens.to("cpu", torch.long).contiguous()


def extreme(tokens: Tensor) -> int:
    """The token that is out of bounds if any is."""
    return int(tokens.min() if tokens.min() < 0 else tokens.max())
