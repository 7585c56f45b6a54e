"""States along a sentence → what is read out of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

READOUTS = ("last", "max", "mean", "attention", "input")
"""The last state of every direction; of all states the greatest, the mean, or a mean by weights
that are learnt; and the mean of what came in."""
LEAST = -1.0
"""No state of a cell is less."""


class Readout(nn.Module):
    """One of `READOUTS`, or several side by side. What is beyond a row's length never counts."""

    def __init__(self, kinds: Sequence[str], units: int, inputs: int) -> None:
        super().__init__()
        self.kinds = tuple(kinds)
        self.width = sum(inputs if kind == "input" else units for kind in kinds)
        self.attention = nn.Linear(units, 1, bias=False) if "attention" in kinds else None

    def forward(self, states: Tensor, last: Tensor, inputs: Tensor, lengths: Tensor) -> Tensor:
        """States [rows, time, units], the last ones [directions, rows, hidden], and what came in,
        [rows, time, inputs] → [rows, width]."""
        inside = (torch.arange(states.shape[1], device=states.device) < lengths[:, None])[..., None]
        count = lengths.clamp(min=1)[:, None]
        found = []
        for kind in self.kinds:
            if kind == "last":
                found.append(last.transpose(0, 1).flatten(1))
            elif kind == "max":
                found.append(states.masked_fill(~inside, LEAST).amax(1))
            elif kind == "mean":
                found.append((states * inside).sum(1) / count)
            elif kind == "input":
                found.append((inputs * inside).sum(1) / count)
            elif self.attention is not None:
                score = self.attention(states).masked_fill(~inside, -1e9)
                found.append((score.softmax(1) * states).sum(1))
        return found[0] if len(found) == 1 else torch.cat(found, -1)
