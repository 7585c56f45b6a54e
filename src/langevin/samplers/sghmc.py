"""Stochastic gradient Hamiltonian Monte Carlo: SGD with momentum that samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor

from .base import Sampler, common_settings, require


def sghmc_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, momentum: Tensor, *, lr: float, num_data: float,
    prior_pull: float, temperature: float, friction: float, injected: float,
) -> None:
    """m ← (1−α)m − lr·(ḡ + θ/(Nσ²)) + √(2A·lr·T/N)·ξ;   θ ← θ + m        Chen, Fox & Guestrin 2014

    α is `friction`, A is `injected` (equal in SGHMC; a thermostat moves α alone) and `prior_pull` is 1/(Nσ²).
    The factor is 2α and not α(2−α): it makes the *positions* exact up to O(lr) for a quadratic energy, while the
    momenta, which live half a step away, read 1/(1−α/2) too warm.
    """
    drift = grad + theta * prior_pull if prior_pull else grad
    momentum.mul_(1 - friction).sub_(drift * lr)
    if noise is not None:
        momentum.add_(noise * math.sqrt(2 * injected * lr * temperature / num_data))
    theta.add_(momentum)


class SGHMC(Sampler):
    """`torch.optim.SGD(momentum=1−friction)` that samples: that optimiser at temperature 0 with a flat prior.

    The first momentum is drawn at the right temperature, N(0, lr·T/N). The momentum carries the learning rate (torch's
    does not), so the two differ for 1/friction steps after a change of the rate.
    """

    memory = ("momentum",)

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None, temperature: float = 1.0,
        seed: int | None = None, maximize: bool = False, fused: bool | None = None, friction: float = 0.1,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize,
            fused=fused, friction=friction,
        )

    def check_settings(self, group: dict[str, Any]) -> None:
        check_friction(group)

    def functions(self) -> tuple[Callable[..., None], str]:
        return sghmc_, "sghmc"

    def settings(self, group: dict[str, Any]) -> dict[str, Any]:
        return common_settings(group) | {"friction": group["friction"], "injected": group["friction"]}

    def start(self, theta: Tensor, group: dict[str, Any], number: int) -> dict[str, Tensor]:
        return {"momentum": self.first_momentum(theta, group, number)}


def check_friction(group: dict[str, Any]) -> None:
    """Shared by the samplers with momentum."""
    require(0 < group["friction"] <= 1, "friction", "in (0, 1]", group["friction"], "0.1 is momentum 0.9")
