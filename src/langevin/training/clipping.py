"""Gradient clipping: explicit, and counted, because a clipped gradient bends the temperature."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Clipper:
    """`none`; `norm`: scale down to the norm when it is exceeded; `always`: scale to the norm, up
    or down.

    The last is what the authors' code did: its comparison was true for every gradient.
    """

    def __init__(self, mode: str, norm: float) -> None:
        self.mode, self.norm = mode, norm
        self.asked, self.acted = 0, 0

    @torch.no_grad()
    def clip_(self, parameters: Sequence[Tensor]) -> None:
        if self.mode == "none":
            return
        grads = [p.grad for p in parameters if p.grad is not None]
        total = float(torch.nn.utils.get_total_norm(grads))
        self.asked += 1
        if total > self.norm or (self.mode == "always" and total > 0):
            self.acted += 1
            for grad in grads:
                grad.mul_(self.norm / total)
