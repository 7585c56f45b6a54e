"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .checks import Group, Settings
from .base import Sampler, common_settings
from .clocks import SharedClock
from .prior import drift


def sgld_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, *, lr: float, num_data: float,
    prior_var: float | None, temperature: float, prior_mean: Tensor | None = None,
) -> None:  # fmt: skip
    """θ ← θ − lr·(ḡ + θ/(Nσ²)) + √(2·lr·T/N)·ξ        Welling & Teh 2011

    ḡ is the gradient of the mean negative log-likelihood; their step size is our 2·lr/N.
    """
    theta.sub_(drift(theta, grad, num_data, prior_var, prior_mean) * lr)
    if noise is not None:
        theta.add_(noise * math.sqrt(2 * lr * temperature / num_data))


class SGLD(Sampler):
    """`torch.optim.SGD` that samples: at temperature 0 with a flat prior it is plain SGD.

    >>> model = torch.nn.Linear(2, 1)
    >>> sampler = SGLD(model.parameters(), lr=0.1, num_data=50_000, prior_var=1.0)
    """

    update = staticmethod(sgld_)
    kernel = "sgld"

    def settings(self, group: Group) -> Settings:
        return common_settings(group)

    def clock(self, device: torch.device) -> SharedClock:
        return SharedClock(device)
