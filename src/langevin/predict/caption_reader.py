"""All samples of a captioner at once, as a reader: what beam search goes along."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import LangevinError
from ..models.reader import Reader, step_by_step
from ..models.stacked import on_tensors, reorder
from ..posterior.ensemble import Ensemble


class CaptionReader:
    """Reads captions row by row; a part is a sample, and each has a state of its own.

    `given` of `begin` are the features of the images, [rows, width].
    """

    def __init__(self, ensemble: Ensemble, start: int) -> None:
        self.ensemble, self.start = ensemble, start
        self.device = next(ensemble.model.parameters()).device
        self.carry: Any = None
        self.log_p = torch.empty(len(ensemble), 0, 0)

    @property
    def weights(self) -> Tensor:
        parts, rows = self.log_p.shape[:2]
        return torch.full((parts, rows), 1 / parts)

    def begin(self, rows: int, given: Tensor | None = None) -> None:
        if given is None or len(given) != rows:
            got = "none" if given is None else f"those of {len(given)}"
            raise LangevinError(f"expected features of {rows} images to describe, got {got}")
        self.carry = self.ensemble(given.to(self.device), method="begin")
        self.go_on(torch.full((rows,), self.start))

    def foresee(self) -> Tensor:
        return self.log_p

    def read(self, tokens: Tensor) -> Tensor:
        scored = []
        for column in tokens.unbind(1):
            wanted = column.expand(len(self.log_p), -1)[..., None]
            scored.append(self.log_p.gather(-1, wanted)[..., 0])
            self.go_on(column)
        return torch.stack(scored, -1)

    def foresee_along(self, tokens: Tensor) -> Tensor:
        return step_by_step(self, tokens)

    def take(self, rows: Tensor) -> None:
        self.carry = reorder(self.carry, rows.to(self.device))
        self.log_p = self.log_p.index_select(1, rows)

    def join(self, other: Reader) -> None:
        if not isinstance(other, CaptionReader) or other.ensemble is not self.ensemble:
            raise LangevinError("expected a reader of the same samples to join, got another")
        self.carry = on_tensors(lambda *parts: torch.cat(parts, -2), self.carry, other.carry)
        self.log_p = torch.cat([self.log_p, other.log_p], 1)

    def go_on(self, tokens: Tensor) -> None:
        """Read a word in each row."""
        words = tokens.to(self.device)
        logits, self.carry = self.ensemble(words, carry=self.carry, method="step")
        self.log_p = torch.log_softmax(logits, -1).cpu()
