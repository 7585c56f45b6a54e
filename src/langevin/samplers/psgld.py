"""Preconditioned stochastic gradient Langevin dynamics: RMSprop or Adagrad that samples."""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from .base import Common, Sampler, common_settings
from .checks import Group, Settings, check_preconditioner
from .clocks import FrozenClock
from .noise import exact_sqrt
from .prior import drift


def psgld_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, second_moment: Tensor, *, lr: float,
    num_data: float, prior_var: float | None, temperature: float,
    prior_mean: Tensor | None = None, **preconditioner: Any,
) -> None:  # fmt: skip
    """θ ← θ − lr·G·(ḡ + θ/(Nσ²)) + √(2·lr·T·G/N)·ξ        Li et al. 2016; Gan et al. 2017

    G is the diagonal of `gain_`. Algorithm 1 of Gan et al. adds the gradient step, which climbs the
    energy: the sign here is minus. Its η is 2·lr and its G is ours divided by N.
    """
    gain = gain_(second_moment, grad, **preconditioner)
    theta.sub_(drift(theta, grad, num_data, prior_var, prior_mean) * gain * lr)
    if noise is not None:
        theta.add_(noise * exact_sqrt(gain * (2 * lr * temperature / num_data)))


def gain_(
    second_moment: Tensor, grad: Tensor, *, preconditioner: str, beta: float, eps: float,
    eps_inside: bool, ceiling: float,
) -> Tensor:  # fmt: skip
    """v ← βv + (1−β)ḡ²  (adagrad: v ← v + ḡ²), then the gain of v"""
    square = grad * grad
    if preconditioner == "rmsprop":
        second_moment.mul_(beta).add_(square * (1 - beta))
    else:
        second_moment.add_(square)
    return gain(second_moment, eps=eps, eps_inside=eps_inside, ceiling=ceiling)


def gain(second_moment: Tensor, *, eps: float, eps_inside: bool, ceiling: float) -> Tensor:
    """G = min(1/(ε + √v), ceiling), or 1/√(ε + v) with ε inside."""
    root = exact_sqrt(second_moment + eps) if eps_inside else exact_sqrt(second_moment) + eps
    return torch.clamp(torch.reciprocal(root), max=ceiling)


def gain_ceiling(group: Group) -> float:
    """The largest G: Nσ unless the group names one.

    A weight that gets no gradient (the row of a rare word) has v → 0, and 1/(ε+√v) would let it
    jump by tens of prior standard deviations in one step, or let the pull of the prior overshoot.
    The energy has a gradient of its own there: under the prior, θ/(Nσ²) has second moment 1/(Nσ)²,
    so Nσ is the gain that RMSprop would give to a weight that feels nothing but its prior. It binds
    exactly where the data push more weakly than the prior does, and keeps the pull of the prior per
    step at lr/σ or less, far inside stability. A flat prior has no scale; unit variance is taken
    for the ceiling alone. The optimiser twin (T = 0, flat prior) has no ceiling.
    """
    if group["ceiling"] is not None:
        return float(group["ceiling"])
    if group["prior_var"] is None:
        return math.inf if group["temperature"] == 0 else float(group["num_data"])
    return float(group["num_data"] * math.sqrt(group["prior_var"]))


class PSGLD(Sampler):
    """`torch.optim.RMSprop` (or Adagrad) that samples: at temperature 0 with a flat prior it is
    that optimiser.

    Departures from the paper: the sign (see `psgld_`), and a ceiling on the preconditioner (see
    `gain_ceiling`). As in the paper and its code, the correction Γ for the change of G with θ is
    dropped, so that the law is exact only as far as G is constant; β near 1 makes the error small.

    With sparse gradients v belongs to the steps in which a row was in the batch: it does not decay
    in between, as it would in dense RMSprop. The rows outside the batch diffuse with their G as it
    stands.

    `preconditioner`: 'rmsprop', the default, or 'adagrad': how v, the memory of squared gradients,
        is kept.
    `beta` (β): the share of v that stays from step to step, 0.99 by default; rmsprop alone has it.
    `eps` (ε): added to √v, 1e-8 by default.
    `eps_inside`: True adds ε to v, under the root, as the authors' code did.
    `ceiling`: the largest gain G; None, the default, derives it from the prior.
    """

    update = staticmethod(psgld_)
    kernel = "psgld"
    memory = ("second_moment",)

    def __init__(
        self, params: Any, lr: float, *, preconditioner: str = "rmsprop", beta: float = 0.99,
        eps: float = 1e-8, eps_inside: bool = False, ceiling: float | None = None,
        **common: Unpack[Common],
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, preconditioner=preconditioner, beta=beta, eps=eps, eps_inside=eps_inside,
            ceiling=ceiling, **common,
        )  # fmt: skip

    def check_settings(self, group: Group) -> None:
        check_preconditioner(group)

    def settings(self, group: Group) -> Settings:
        return common_settings(group) | preconditioner_settings(group)

    def start(self, theta: Tensor, group: Group, number: int) -> dict[str, Tensor]:
        return {"second_moment": torch.zeros_like(theta, memory_format=torch.preserve_format)}

    def clock(self, device: torch.device) -> FrozenClock:
        return FrozenClock(device, gain)


def preconditioner_settings(group: Group) -> Settings:
    """The arguments of `gain_`, shared with Santa."""
    names = ("preconditioner", "beta", "eps", "eps_inside")
    return {name: group[name] for name in names} | {"ceiling": gain_ceiling(group)}
