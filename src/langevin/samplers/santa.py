"""Santa: preconditioned, thermostatted, annealed. Explores like a sampler, then refines like an optimiser."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .base import Sampler, prior_pull, require
from .psgld import check_preconditioner, gain_, gain_ceiling
from .sghmc import check_friction
from .sgnht import check_thermostat, thermostat_


def santa_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, momentum: Tensor, friction: Tensor, gain: Tensor, *, lr: float,
    num_data: float, prior_pull: float, temperature: float, injected: float,
) -> None:
    """m ← (1−α)m − lr·G·(ḡ + θ/(Nσ²)) + √(2A·lr·T·G/N)·ξ;   θ ← θ + m        Chen et al. 2016, Euler scheme

    Our m is their √G·u. α (`friction`) is a thermostat per weight, A is `injected`, `prior_pull` is 1/(Nσ²).
    """
    drift = grad + theta * prior_pull if prior_pull else grad
    momentum.mul_(1 - friction).sub_(drift * gain * lr)
    if noise is not None:
        momentum.add_(noise * torch.sqrt(gain * (2 * injected * lr * temperature / num_data)))
    theta.add_(momentum)


class Santa(Sampler):
    """`torch.optim.RMSprop(momentum=1−friction)` that explores first: that optimiser at temperature 0, flat prior.

    At step t of exploration the temperature is `temperature`·(t+1)^(−anneal); after `explore` steps (None: never
    ends) it is 0 and the frictions stay where they are. `anneal=0` makes it a sampler at a fixed temperature.

    Departures from Chen et al.: m = √G·u is kept instead of u, which makes the twin exact and drops the terms in the
    change of G (among them a division by u that is unbounded near u = 0); A is a constant, not √G; the
    thermostats run on the dimensionless clock of SGNHT.
    """

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None, temperature: float = 1.0,
        seed: int = 0, maximize: bool = False, friction: float = 0.1, thermostat_rate: float = 1e-4,
        anneal: float = 0.5, explore: int | None = None, preconditioner: str = "rmsprop", beta: float = 0.99,
        eps: float = 1e-8, eps_inside: bool = False, ceiling: float | None = None,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize,
            friction=friction, thermostat_rate=thermostat_rate, anneal=anneal, explore=explore,
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

    def update(self, theta: Tensor, grad: Tensor, group: dict[str, Any], number: int) -> None:
        group = group | {"temperature": annealed(group)}
        state = self.state[theta]
        if not state:
            state["second_moment"] = torch.zeros_like(theta, memory_format=torch.preserve_format)
            state["momentum"] = torch.zeros_like(theta, memory_format=torch.preserve_format)
            state["friction"] = torch.full_like(theta, group["friction"], memory_format=torch.preserve_format)
        gain = gain_(
            state["second_moment"], grad, preconditioner=group["preconditioner"], beta=group["beta"],
            eps=group["eps"], eps_inside=group["eps_inside"], ceiling=gain_ceiling(group),
        )
        santa_(
            theta, grad, self.noise(theta, group, number), state["momentum"], state["friction"], gain,
            lr=group["lr"], num_data=group["num_data"], prior_pull=prior_pull(group),
            temperature=group["temperature"], injected=group["friction"],
        )
        target = group["lr"] * group["temperature"] / group["num_data"]
        if target > 0:
            heat = state["momentum"].square() / gain
            thermostat_(state["friction"], heat, target=target, rate=group["thermostat_rate"])


def annealed(group: dict[str, Any]) -> float:
    """T·(t+1)^(−anneal) while exploring, then 0."""
    if group["explore"] is not None and group["steps_done"] >= group["explore"]:
        return 0.0
    return float(group["temperature"] * math.pow(group["steps_done"] + 1, -group["anneal"]))
