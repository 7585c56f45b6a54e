"""Stochastic gradient Nosé-Hoover thermostat: SGHMC whose friction adapts to unknown gradient noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from .base import Sampler, common_settings, require
from .noise import BLOCK
from .sghmc import check_friction, sghmc_

Number = TypeVar("Number", float, Tensor)


def thermostat(friction: Number, heat: Number, *, target: float, rate: float) -> Number:
    """α ← α + γ·((1−α/2)·⟨m²⟩ / (lr·T/N) − 1)        Ding et al. 2014, made dimensionless

    `heat` is ⟨m²⟩, `target` lr·T/N, `rate` γ. Gradient noise of unknown size warms the momenta; friction rises until
    they are at temperature T again. The factor 1−α/2 is the half step between momenta and positions (see `sghmc_`):
    with it the positions of a quadratic energy come out exact, with no error in lr. Ding et al. take γ = lr/N in
    these units, which never moves in the life of a training run. The caller keeps α in [0, 1].
    """
    return friction + ((1 - friction / 2) * heat / target - 1) * rate


def sgnht_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, momentum: Tensor, friction: Tensor, *, lr: float,
    num_data: float, prior_pull: float, temperature: float, injected: float, thermostat_rate: float,
) -> None:
    """`sghmc_` at the friction of one thermostat for the whole tensor, then `thermostat` on the mean of m²."""
    sghmc_(
        theta, grad, noise, momentum, lr=lr, num_data=num_data, prior_pull=prior_pull, temperature=temperature,
        friction=float(friction), injected=injected,
    )
    target = lr * temperature / num_data
    if target > 0 and theta.numel():
        heat = mean_square(momentum)
        friction.fill_(min(max(thermostat(float(friction), heat, target=target, rate=thermostat_rate), 0.0), 1.0))


def mean_square(momentum: Tensor) -> float:
    """⟨m²⟩, summed in float64 in a fixed order: halves of each block onto each other, then block after block.

    A plain sum would depend on the number of threads, and with it every later step.
    """
    squares = momentum.square().double().flatten()
    piles = torch.nn.functional.pad(squares, (0, -len(squares) % BLOCK)).view(-1, BLOCK)
    while piles.shape[1] > 1:
        half = piles.shape[1] // 2
        piles = piles[:, :half] + piles[:, half:]
    return float(piles[:, 0].cpu().numpy().sum()) / momentum.numel()


class SGNHT(Sampler):
    """SGHMC with one thermostat per parameter tensor; momentum SGD at temperature 0 with a flat prior.

    `friction` is the injected noise A and the first value of α; `thermostat_rate` is γ.
    """

    memory = ("momentum", "friction")

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None, temperature: float = 1.0,
        seed: int | None = None, maximize: bool = False, fused: bool | None = None, friction: float = 0.1,
        thermostat_rate: float = 1e-3,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize,
            fused=fused, friction=friction, thermostat_rate=thermostat_rate,
        )

    def check_settings(self, group: dict[str, Any]) -> None:
        check_friction(group)
        check_thermostat(group)

    def functions(self) -> tuple[Callable[..., None], str]:
        return sgnht_, "sgnht"

    def settings(self, group: dict[str, Any]) -> dict[str, Any]:
        return common_settings(group) | {"injected": group["friction"], "thermostat_rate": group["thermostat_rate"]}

    def start(self, theta: Tensor, group: dict[str, Any], number: int) -> dict[str, Tensor]:
        friction = torch.full((), group["friction"], dtype=theta.dtype, device=theta.device)
        return {"momentum": self.first_momentum(theta, group, number), "friction": friction}


def check_thermostat(group: dict[str, Any]) -> None:
    """Shared by SGNHT and Santa."""
    require(
        group["thermostat_rate"] >= 0, "thermostat_rate", "zero or positive", group["thermostat_rate"],
        "1e-3 adapts over some hundred steps",
    )
