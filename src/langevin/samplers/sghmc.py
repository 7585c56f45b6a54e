"""Stochastic gradient Hamiltonian Monte Carlo: SGD with momentum that samples."""

from __future__ import annotations

import math
from typing import Any, Unpack

from torch import Tensor

from .base import Common, Sampler, common_settings, friction_of
from .checks import Group, Settings, check_friction
from .prior import drift


def sghmc_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, momentum: Tensor, *, lr: float,
    num_data: float, prior_var: float | None, temperature: float, friction: float,
    injected: float, prior_mean: Tensor | None = None,
) -> None:  # fmt: skip
    """m ← (1−α)m − lr·(ḡ + θ/(Nσ²)) + √(2A·lr·T/N)·ξ;   θ ← θ + m     Chen, Fox & Guestrin 2014

    α is `friction`, A is `injected` (equal in SGHMC; a thermostat moves α alone). The factor is 2α
    and not α(2−α): it makes the *positions* exact up to O(lr) for a quadratic energy, while the
    momenta, which live half a step away, read 1/(1−α/2) too warm.
    """
    momentum.mul_(1 - friction).sub_(drift(theta, grad, num_data, prior_var, prior_mean) * lr)
    if noise is not None:
        momentum.add_(noise * math.sqrt(2 * injected * lr * temperature / num_data))
    theta.add_(momentum)


class SGHMC(Sampler):
    """`torch.optim.SGD(momentum=1−friction)` that samples: that optimiser at temperature 0 with a
    flat prior.

    The first momentum is drawn at the right temperature, N(0, lr·T/N). The momentum carries the
    learning rate (torch's does not), so the two differ for 1/friction steps after a change of the
    rate.

    `friction` (α): the share of the momentum that is lost at each step, 0.1 by default.
    """

    update = staticmethod(sghmc_)
    kernel = "sghmc"
    memory = ("momentum",)

    def __init__(
        self, params: Any, lr: float, *, friction: float = 0.1, **common: Unpack[Common]
    ) -> None:
        super().__init__(params, lr, friction=friction, **common)

    def check_settings(self, group: Group) -> None:
        check_friction(group)

    def settings(self, group: Group) -> Settings:
        friction = friction_of(group)
        return common_settings(group) | {"friction": friction, "injected": friction}

    def start(self, theta: Tensor, group: Group, number: int) -> dict[str, Tensor]:
        return {"momentum": self.first_momentum(theta, group, number)}
