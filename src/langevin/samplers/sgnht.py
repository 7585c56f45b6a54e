"""Stochastic gradient Nosé-Hoover thermostat: SGHMC whose friction adapts to unknown noise."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from .base import Common, Sampler, common_settings, friction_of
from .checks import Group, Settings, check_friction, check_thermostat
from .sghmc import sghmc_
from .thermostat import mean_square, thermostat_


def sgnht_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, momentum: Tensor, friction: Tensor, *,
    lr: float, num_data: float, temperature: float, thermostat_rate: float, **settings: Any,
) -> None:  # fmt: skip
    """m, θ as in `sghmc_`;   α ← α + γ·((1−α/2)·⟨m²⟩ / (lr·T/N) − 1)        Ding et al. 2014

    α is one `friction` for the whole tensor (see `thermostat`), γ is `thermostat_rate`.
    """
    common: dict[str, Any] = {"lr": lr, "num_data": num_data, "temperature": temperature}
    sghmc_(theta, grad, noise, momentum, friction=float(friction), **common, **settings)
    target = lr * temperature / num_data
    if target > 0 and theta.numel():
        thermostat_(friction, mean_square(momentum), target=target, rate=thermostat_rate)


class SGNHT(Sampler):
    """SGHMC with one thermostat for each parameter tensor; momentum SGD at temperature 0 with a
    flat prior.

    `friction`: the injected noise A and the first value of the friction α, 0.1 by default. Changed
        later, it changes A; α follows as the thermostat learns.
    `thermostat_rate` (γ): how fast the thermostat learns, 1e-3 by default.
    """

    update = staticmethod(sgnht_)
    kernel = "sgnht"
    memory = ("momentum", "friction")

    def __init__(
        self, params: Any, lr: float, *, friction: float = 0.1, thermostat_rate: float = 1e-3,
        **common: Unpack[Common],
    ) -> None:  # fmt: skip
        super().__init__(params, lr, friction=friction, thermostat_rate=thermostat_rate, **common)

    def check_settings(self, group: Group) -> None:
        check_friction(group)
        check_thermostat(group)

    def settings(self, group: Group) -> Settings:
        friction = {"injected": friction_of(group), "thermostat_rate": group["thermostat_rate"]}
        return common_settings(group) | friction

    def start(self, theta: Tensor, group: Group, number: int) -> dict[str, Tensor]:
        friction = torch.full((), friction_of(group), dtype=theta.dtype, device=theta.device)
        return {"momentum": self.first_momentum(theta, group, number), "friction": friction}
