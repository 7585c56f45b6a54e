"""Preconditioned stochastic gradient Langevin dynamics: RMSprop or Adagrad that samples."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .base import Sampler, prior_pull, require


def psgld_(
    theta: Tensor, grad: Tensor, noise: Tensor | None, gain: Tensor, *, lr: float, num_data: float, prior_pull: float,
    temperature: float,
) -> None:
    """θ ← θ − lr·G·(ḡ + θ/(Nσ²)) + √(2·lr·T·G/N)·ξ        Li et al. 2016; Algorithm 1 of Gan et al. 2017

    `gain` is the diagonal G and `prior_pull` is 1/(Nσ²). The printed algorithm adds the gradient step, which climbs
    the energy: the sign here is minus. Its η is 2·lr and its G is ours divided by N.
    """
    drift = grad + theta * prior_pull if prior_pull else grad
    theta.sub_(drift * gain * lr)
    if noise is not None:
        theta.add_(noise * torch.sqrt(gain * (2 * lr * temperature / num_data)))


def gain_(
    second_moment: Tensor, grad: Tensor, *, preconditioner: str, beta: float, eps: float, eps_inside: bool,
    ceiling: float,
) -> Tensor:
    """v ← βv + (1−β)ḡ²  (adagrad: v ← v + ḡ²);   G = min(1/(ε + √v), ceiling)"""
    square = grad * grad
    if preconditioner == "rmsprop":
        second_moment.mul_(beta).add_(square * (1 - beta))
    else:
        second_moment.add_(square)
    root = torch.sqrt(second_moment + eps) if eps_inside else torch.sqrt(second_moment) + eps
    return torch.clamp(torch.reciprocal(root), max=ceiling)


def gain_ceiling(group: dict[str, Any]) -> float:
    """The largest G: Nσ/√T unless the group names one.

    A weight that gets no gradient (the row of a rare word) has v → 0, and 1/(ε+√v) would let it jump by tens of
    prior standard deviations in one step. The energy has a gradient of its own there: under the tempered prior,
    θ/(Nσ²) has second moment T/(Nσ)², so Nσ/√T is the gain that RMSprop would give to a weight that feels nothing
    but its prior. With it the pull of the prior per step is at most lr/(σ√T), far inside stability. A flat prior
    has no scale; unit variance is taken for the ceiling alone. At T = 0 there is no ceiling, hence the exact twin.
    """
    if group["ceiling"] is not None:
        return float(group["ceiling"])
    if group["temperature"] == 0:
        return math.inf
    prior_std = 1.0 if group["prior_var"] is None else math.sqrt(group["prior_var"])
    return float(group["num_data"] * prior_std / math.sqrt(group["temperature"]))


class PSGLD(Sampler):
    """`torch.optim.RMSprop` (or Adagrad) that samples: at temperature 0 with a flat prior it is that optimiser.

    Departures from the paper: the sign (see `psgld_`), and a ceiling on the preconditioner (see `gain_ceiling`).
    As in the paper and its code, the correction Γ for the change of G with θ is dropped, so that the law is exact
    only as far as G is constant; β near 1 makes the error small. `eps_inside` puts ε under the root, as the
    authors' code did.
    """

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None, temperature: float = 1.0,
        seed: int = 0, maximize: bool = False, preconditioner: str = "rmsprop", beta: float = 0.99, eps: float = 1e-8,
        eps_inside: bool = False, ceiling: float | None = None,
    ) -> None:
        super().__init__(
            params, lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize,
            preconditioner=preconditioner, beta=beta, eps=eps, eps_inside=eps_inside, ceiling=ceiling,
        )

    def check_settings(self, group: dict[str, Any]) -> None:
        check_preconditioner(group)

    def update(self, theta: Tensor, grad: Tensor, group: dict[str, Any], number: int) -> None:
        state = self.state[theta]
        if not state:
            state["second_moment"] = torch.zeros_like(theta, memory_format=torch.preserve_format)
        gain = gain_(
            state["second_moment"], grad, preconditioner=group["preconditioner"], beta=group["beta"],
            eps=group["eps"], eps_inside=group["eps_inside"], ceiling=gain_ceiling(group),
        )
        psgld_(
            theta, grad, self.noise(theta, group, number), gain, lr=group["lr"], num_data=group["num_data"],
            prior_pull=prior_pull(group), temperature=group["temperature"],
        )


def check_preconditioner(group: dict[str, Any]) -> None:
    """Settings of the preconditioner, shared with Santa."""
    require(
        group["preconditioner"] in ("rmsprop", "adagrad"), "preconditioner", "'rmsprop' or 'adagrad'",
        repr(group["preconditioner"]), "choose one of the two",
    )
    require(0 <= group["beta"] < 1, "beta", "in [0, 1)", group["beta"], "0.99 is usual")
    require(group["eps"] >= 0, "eps", "zero or positive", group["eps"], "1e-8 is usual")
    require(
        group["ceiling"] is None or group["ceiling"] > 0, "ceiling", "positive or None", group["ceiling"],
        "None derives it from the prior",
    )
