"""Samples of a language model as a reader: each is a part, all with the same weight."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import LangevinError
from ..models.reader import Reader
from ..models.stacked import on_tensors, reorder
from .ensemble import Ensemble

LOGITS = 1 << 23
"""Of one sample, held at once while a chunk is read: 32 MB."""


class EnsembleReader:
    """Every sample reads along with a recurrent state of its own.

    The last token of what was read is not given to the samples yet: it is the first that the next
    chunk begins with, so that a chunk is one batched call.

    >>> from langevin.models.language_model import LanguageModel
    >>> model = LanguageModel(9, cell="lstm", embed=4, hidden=4, layers=1)
    >>> reader = EnsembleReader(Ensemble(model, [model, model]), vocabulary=9, start=0)
    >>> reader.read(torch.tensor([[1, 2, 3]])).shape
    torch.Size([2, 1, 3])
    >>> reader.foresee().shape
    torch.Size([2, 1, 9])
    """

    def __init__(self, ensemble: Ensemble, vocabulary: int, start: int) -> None:
        self.ensemble, self.vocabulary, self.start = ensemble, vocabulary, start
        self.device = next(ensemble.model.parameters()).device
        self.begin(1)

    @property
    def weights(self) -> Tensor:
        parts = len(self.ensemble)
        return torch.full((parts, len(self.last)), 1 / parts, dtype=torch.float64)

    def begin(self, rows: int, given: Tensor | None = None) -> None:
        if given is not None:
            raise LangevinError("expected nothing to go by, as a language model foresees texts "
                                "alone, got features; pass given=None")
        self.last = torch.full((rows,), self.start, device=self.device)
        self.carry: Any = None
        """The states before the last token; None where nothing came before it."""
        self.foreseen: tuple[Tensor, Any] | None = None
        """log p of all tokens after the last one, and the states there."""

    def foresee(self) -> Tensor:
        if self.foreseen is None:
            log_p, carry = self.run(self.last[:, None])
            self.foreseen = log_p[:, :, 0], carry
        return self.foreseen[0].cpu()

    def read(self, tokens: Tensor) -> Tensor:
        tokens = self.checked(tokens)
        pieces = [torch.empty(len(self.ensemble), *tokens.shape[:1], 0)]
        if self.foreseen is not None and tokens.shape[1]:
            log_p, self.carry = self.foreseen
            self.last, self.foreseen = tokens[:, 0], None
            pieces.append(log_p.gather(-1, self.last.expand(len(log_p), -1)[..., None]).cpu())
            tokens = tokens[:, 1:]
        for piece in self.chunks(tokens):
            inputs = torch.cat([self.last[:, None], piece[:, :-1]], 1)
            found = self.ensemble.score(inputs, targets=piece, carry=self.carry)
            assert found.each is not None
            self.carry, self.last = found.carry, piece[:, -1]
            pieces.append(found.each.cpu())
        return torch.cat(pieces, 2)

    def foresee_along(self, tokens: Tensor) -> Tensor:
        tokens = self.checked(tokens)
        if not tokens.shape[1]:
            return self.foresee()[:, :, None][:, :, :0]
        log_p, self.carry = self.run(torch.cat([self.last[:, None], tokens[:, :-1]], 1))
        self.last, self.foreseen = tokens[:, -1], None
        return log_p.cpu()

    def take(self, rows: Tensor) -> None:
        if rows.dim() != 1 or ((rows < 0) | (rows >= len(self.last))).any():
            raise LangevinError(f"expected rows from 0 to {len(self.last) - 1}, got "
                                f"{rows.tolist()}")
        rows = rows.to(self.device)
        self.last, self.carry = self.last[rows], reorder(self.carry, rows)
        if self.foreseen is not None:
            log_p, carry = self.foreseen
            self.foreseen = log_p[:, rows], reorder(carry, rows)

    def join(self, other: Reader) -> None:
        if not isinstance(other, EnsembleReader) or other.ensemble is not self.ensemble:
            raise LangevinError("expected a reader of the same samples to join, got another; make "
                                "both by reader() of one posterior")
        if self.carry is not None or other.carry is not None:
            ours = zero_like(other.carry, len(self.last)) if self.carry is None else self.carry
            theirs = zero_like(self.carry, len(other.last)) if other.carry is None else other.carry
            self.carry = on_tensors(lambda *parts: torch.cat(parts, -2), ours, theirs)
        self.last, self.foreseen = torch.cat([self.last, other.last]), None

    def run(self, inputs: Tensor) -> tuple[Tensor, Any]:
        """log p of what comes after each input, [parts, rows, n, V], and the states at the end."""
        logits, carry = self.ensemble(inputs, carry=self.carry)
        return torch.log_softmax(logits, -1), carry

    def checked(self, tokens: Tensor) -> Tensor:
        if tokens.dim() != 2 or len(tokens) != len(self.last) or tokens.is_floating_point():
            raise LangevinError(f"expected integer tokens in {len(self.last)} rows, got "
                                f"{tokens.dtype} of shape {list(tokens.shape)}")
        return tokens.to(self.device, torch.long)

    def chunks(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """Columns that are read in one call."""
        if not tokens.shape[1]:
            return ()
        return torch.split(tokens, max(1, LOGITS // (len(tokens) * self.vocabulary)), 1)


def zero_like(carry: Any, rows: int) -> Any:
    """The states of so many rows that have read nothing."""
    return on_tensors(lambda part: part.new_zeros(*part.shape[:-2], rows, part.shape[-1]), carry)
