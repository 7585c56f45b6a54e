"""Stochastic gradient Nosé-Hoover thermostat: SGHMC whose friction adapts to unknown gradient noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import Sampler, prior_pull, require
from .sghmc import check_friction, sghmc_


def thermostat_(friction: Tensor, heat: Tensor, *, target: float, rate: float) -> None:
    """α ← α + γ·((1−α/2)·⟨m²⟩ / (lr·T/N) − 1)        Ding et al. 2014, made dimensionless

    `heat` is ⟨m²⟩, `target` lr·T/N, `rate` γ. Gradient noise of unknown size warms the momenta; friction rises until
    they are at temperature T again. The factor 1−α/2 is the half step between momenta and positions (see `sghmc_`):
    with it the positions of a quadratic energy come out exact, with no error in lr. Ding et al. take γ = lr/N in
    these units, which never moves in the life of a training run.
    """
    friction.add_(((1 - friction / 2) * heat / target - 1) * rate).clamp_(min=0.0, max=1.0)


class SGNHT(Sampler):
    """SGHMC with one thermostat per parameter tensor; momentum SGD at temperature 0 with a flat prior.

    `friction` is the injected noise A and the first value of α; `thermostat_rate` is γ.
    """

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None, temperature: float = 1.0,
        seed: int = 0, maximize: bool = False, friction: float = 0.1, thermostat_rate: float = 1e-3,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize,
            friction=friction, thermostat_rate=thermostat_rate,
        )

    def check_settings(self, group: dict[str, Any]) -> None:
        check_friction(group)
        check_thermostat(group)

    def update(self, theta: Tensor, grad: Tensor, group: dict[str, Any], number: int) -> None:
        state = self.state[theta]
        if not state:
            state["momentum"] = self.first_momentum(theta, group, number)
            state["friction"] = torch.full((), group["friction"], dtype=theta.dtype, device=theta.device)
        target = group["lr"] * group["temperature"] / group["num_data"]
        sghmc_(
            theta, grad, self.noise(theta, group, number), state["momentum"], lr=group["lr"],
            num_data=group["num_data"], prior_pull=prior_pull(group), temperature=group["temperature"],
            friction=float(state["friction"]), injected=group["friction"],
        )
        if target > 0 and theta.numel():
            thermostat_(
                state["friction"], state["momentum"].square().mean(), target=target, rate=group["thermostat_rate"]
            )


def check_thermostat(group: dict[str, Any]) -> None:
    """Shared by SGNHT and Santa."""
    require(
        group["thermostat_rate"] >= 0, "thermostat_rate", "zero or positive", group["thermostat_rate"],
        "1e-3 adapts over some hundred steps",
    )
