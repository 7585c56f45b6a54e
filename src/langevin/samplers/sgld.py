"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .base import Sampler, common_settings
from .clocks import SharedClock


def sgld_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, *, lr: float, num_data: float, prior_pull: float,
    temperature: float,
) -> None:
    """θ ← θ − lr·(ḡ + θ/(Nσ²)) + √(2·lr·T/N)·ξ        Welling & Teh 2011

    ḡ is the gradient of the mean negative log-likelihood and `prior_pull` is 1/(Nσ²); their step size is 2·lr/N.
    """
    drift = grad + theta * prior_pull if prior_pull else grad
    theta.sub_(drift * lr)
    if noise is not None:
        theta.add_(noise * math.sqrt(2 * lr * temperature / num_data))


class SGLD(Sampler):
    """`torch.optim.SGD` that samples: at temperature 0 with a flat prior it is plain SGD.

    >>> model = torch.nn.Linear(2, 1)
    >>> sampler = SGLD(model.parameters(), lr=0.1, num_data=50_000, prior_var=1.0)
    """

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None, temperature: float = 1.0,
        seed: int | None = None, maximize: bool = False, fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize,
            fused=fused,
        )

    def functions(self) -> tuple[Callable[..., None], str]:
        return sgld_, "sgld"

    def settings(self, group: dict[str, Any]) -> dict[str, Any]:
        return common_settings(group)

    def clock(self, device: torch.device) -> SharedClock:
        return SharedClock(device)
