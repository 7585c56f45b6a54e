"""Santa: preconditioned, thermostatted, annealed. Explores like a sampler, then refines like an
optimiser.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from .base import Common, Sampler, common_settings, friction_of
from .checks import Group, Settings, check_annealing, check_friction, check_preconditioner, check_thermostat
from .noise import exact_sqrt
from .prior import drift
from .psgld import gain_, preconditioner_settings
from .thermostat import thermostat


def santa_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, second_moment: Tensor, momentum: Tensor,
    friction: Tensor, *, lr: float, num_data: float, prior_var: float | None, temperature: float,
    injected: float, thermostat_rate: float, prior_mean: Tensor | None = None,
    **preconditioner: Any,
) -> None:  # fmt: skip
    """m ← (1−α)m − lr·G·(ḡ + θ/(Nσ²)) + √(2A·lr·T·G/N)·ξ;   θ ← θ + m         Chen et al. 2016

    Our m is their √G·u, by their Euler scheme. A is `injected`, α a `thermostat` for each weight.
    """
    gain = gain_(second_moment, grad, **preconditioner)
    push = drift(theta, grad, num_data, prior_var, prior_mean) * gain * lr
    momentum.mul_(1 - friction).sub_(push)
    if noise is not None:
        heat = 2 * injected * lr * temperature / num_data
        momentum.add_(noise * exact_sqrt(gain * heat))
    theta.add_(momentum)
    if (target := lr * temperature / num_data) > 0:
        warmth = momentum.square() / gain
        moved = thermostat(friction, warmth, target=target, rate=thermostat_rate)
        friction.copy_(moved.clamp_(0, 1))


class Santa(Sampler):
    """`torch.optim.RMSprop(momentum=1−friction)` that explores first: that optimiser at temperature
    0 with a flat prior.

    At step t of exploration the temperature is `temperature`·(t+1)^(−anneal); after `explore` steps
    it is 0 and the frictions stay where they are. `anneal=0` makes it a sampler at a fixed
    temperature.

    Departures from Chen et al.: m = √G·u is kept instead of u, which makes the twin exact and drops
    the terms in the change of G (among them a division by u that is unbounded near u = 0); A is a
    constant, not √G; the thermostats run on the dimensionless clock of SGNHT.

    `friction`: the injected noise A and the first value of every friction α, 0.1 by default.
        Changed later, it changes A; α follows as the thermostats learn.
    `thermostat_rate` (γ): how fast the thermostats learn, 1e-4 by default.
    `anneal`: how fast the temperature falls, 0.5 by default.
    `explore`: number of exploring steps; None, the default, never ends.
    `preconditioner`: 'rmsprop', the default, or 'adagrad': how v, the memory of squared gradients,
        is kept.
    `beta` (β): the share of v that stays from step to step, 0.99 by default; rmsprop alone has it.
    `eps` (ε): added to √v, 1e-8 by default.
    `eps_inside`: True adds ε to v, under the root.
    `ceiling`: the largest gain G; None, the default, derives it from the prior.
    """

    update = staticmethod(santa_)
    kernel = "santa"
    memory = ("second_moment", "momentum", "friction")

    def __init__(
        self, params: Any, lr: float, *, friction: float = 0.1, thermostat_rate: float = 1e-4,
        anneal: float = 0.5, explore: int | None = None, preconditioner: str = "rmsprop",
        beta: float = 0.99, eps: float = 1e-8, eps_inside: bool = False,
        ceiling: float | None = None, **common: Unpack[Common],
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, friction=friction, thermostat_rate=thermostat_rate, anneal=anneal,
            explore=explore, preconditioner=preconditioner, beta=beta, eps=eps,
            eps_inside=eps_inside, ceiling=ceiling, **common,
        )  # fmt: skip

    def check_settings(self, group: Group) -> None:
        check_friction(group)
        check_thermostat(group)
        check_preconditioner(group)
        check_annealing(group)

    def settings(self, group: Group) -> Settings:
        group = group | {"temperature": annealed(group)}
        friction = {"injected": friction_of(group), "thermostat_rate": group["thermostat_rate"]}
        return common_settings(group) | preconditioner_settings(group) | friction

    def start(self, theta: Tensor, group: Group, number: int) -> dict[str, Tensor]:
        zeros = [torch.zeros_like(theta, memory_format=torch.preserve_format) for _ in range(2)]
        friction = torch.full_like(
            theta, friction_of(group), memory_format=torch.preserve_format
        )
        return {"second_moment": zeros[0], "momentum": zeros[1], "friction": friction}


def annealed(group: Group) -> float:
    """T·(t+1)^(−anneal) while exploring, then 0."""
    if group["explore"] is not None and group["steps_done"] >= group["explore"]:
        return 0.0
    return float(group["temperature"] * math.pow(group["steps_done"] + 1, -group["anneal"]))
