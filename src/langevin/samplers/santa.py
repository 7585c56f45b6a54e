"""Santa: preconditioned, thermostatted, annealed. Explores like a sampler, then refines like an optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .base import Sampler, common_settings, require
from .noise import exact_sqrt
from .psgld import check_preconditioner, gain_, preconditioner_settings
from .sghmc import check_friction
from .sgnht import check_thermostat, thermostat


def santa_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, second_moment: Tensor, momentum: Tensor, friction: Tensor, *,
    lr: float, num_data: float, prior_pull: float, temperature: float, injected: float, thermostat_rate: float,
    **preconditioner: Any,
) -> None:
    """m ← (1−α)m − lr·G·(ḡ + θ/(Nσ²)) + √(2A·lr·T·G/N)·ξ;   θ ← θ + m        Chen et al. 2016, Euler scheme

    Our m is their √G·u. α (`friction`) is a thermostat per weight, A is `injected`, `prior_pull` is 1/(Nσ²).
    """
    gain = gain_(second_moment, grad, **preconditioner)
    drift = grad + theta * prior_pull if prior_pull else grad
    momentum.mul_(1 - friction).sub_(drift * gain * lr)
    if noise is not None:
        momentum.add_(noise * exact_sqrt(gain * (2 * injected * lr * temperature / num_data)))
    theta.add_(momentum)
    target = lr * temperature / num_data
    if target > 0:
        heat = momentum.square() / gain
        friction.copy_(thermostat(friction, heat, target=target, rate=thermostat_rate).clamp_(0, 1))


class Santa(Sampler):
    """`torch.optim.RMSprop(momentum=1−friction)` that explores first: that optimiser at temperature 0, flat prior.

    At step t of exploration the temperature is `temperature`·(t+1)^(−anneal); after `explore` steps (None: never
    ends) it is 0 and the frictions stay where they are. `anneal=0` makes it a sampler at a fixed temperature.

    Departures from Chen et al.: m = √G·u is kept instead of u, which makes the twin exact and drops the terms in the
    change of G (among them a division by u that is unbounded near u = 0); A is a constant, not √G; the
    thermostats run on the dimensionless clock of SGNHT.
    """

    memory = ("second_moment", "momentum", "friction")

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None, temperature: float = 1.0,
        seed: int | None = None, maximize: bool = False, fused: bool | None = None, friction: float = 0.1,
        thermostat_rate: float = 1e-4, anneal: float = 0.5, explore: int | None = None,
        preconditioner: str = "rmsprop", beta: float = 0.99, eps: float = 1e-8, eps_inside: bool = False,
        ceiling: float | None = None,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize,
            fused=fused, friction=friction, thermostat_rate=thermostat_rate, anneal=anneal, explore=explore,
            preconditioner=preconditioner, beta=beta, eps=eps, eps_inside=eps_inside, ceiling=ceiling,
        )

    def check_settings(self, group: dict[str, Any]) -> None:
        check_friction(group)
        check_thermostat(group)
        check_preconditioner(group)
        require(group["anneal"] >= 0, "anneal", "zero or positive", group["anneal"], "0 keeps the temperature")
        require(
            group["explore"] is None or group["explore"] >= 0, "explore", "zero, positive or None", group["explore"],
            "pass the number of exploring steps",
        )

    def functions(self) -> tuple[Callable[..., None], str]:
        return santa_, "santa"

    def settings(self, group: dict[str, Any]) -> dict[str, Any]:
        group = group | {"temperature": annealed(group)}
        own = {"injected": group["friction"], "thermostat_rate": group["thermostat_rate"]}
        return common_settings(group) | preconditioner_settings(group) | own

    def start(self, theta: Tensor, group: dict[str, Any], number: int) -> dict[str, Tensor]:
        zeros = [torch.zeros_like(theta, memory_format=torch.preserve_format) for _ in range(2)]
        friction = torch.full_like(theta, group["friction"], memory_format=torch.preserve_format)
        return {"second_moment": zeros[0], "momentum": zeros[1], "friction": friction}


def annealed(group: dict[str, Any]) -> float:
    """T·(t+1)^(−anneal) while exploring, then 0."""
    if group["explore"] is not None and group["steps_done"] >= group["explore"]:
        return 0.0
    return float(group["temperature"] * math.pow(group["steps_done"] + 1, -group["anneal"]))
