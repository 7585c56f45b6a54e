"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from .base import Sampler, prior_pull


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
        seed: int = 0, maximize: bool = False,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize
        )

    def update(self, theta: Tensor, grad: Tensor, group: dict[str, Any], number: int) -> None:
        sgld_(
            theta, grad, self.noise(theta, group, number), lr=group["lr"], num_data=group["num_data"],
            prior_pull=prior_pull(group), temperature=group["temperature"],
        )
