"""Thermostats: frictions that learn how much noise the gradients bring along."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

from .noise import BLOCK

Number = TypeVar("Number", float, Tensor)


def thermostat(friction: Number, heat: Number, *, target: float, rate: float) -> Number:
    """α ← α + γ·((1−α/2)·⟨m²⟩ / (lr·T/N) − 1)        Ding et al. 2014, made dimensionless

    `heat` is ⟨m²⟩, `target` lr·T/N, `rate` γ. Gradient noise of unknown size warms the momenta;
    friction rises until they are at temperature T again. The factor 1−α/2 is the half step between
    momenta and positions (see `sghmc_`): with it the positions of a quadratic energy come out
    exact, with no error in lr. Ding et al. take γ = lr/N in these units, which never moves in the
    life of a training run. The caller keeps α in [0, 1].
    """
    return friction + ((1 - friction / 2) * heat / target - 1) * rate


def thermostat_(friction: Tensor, heat: float, *, target: float, rate: float) -> None:
    """One `thermostat` for a whole tensor, kept in [0, 1]; `friction` is a scalar."""
    alpha = thermostat(float(friction), heat, target=target, rate=rate)
    friction.fill_(min(max(alpha, 0.0), 1.0))


def mean_square(momentum: Tensor) -> float:
    """⟨m²⟩, summed in float64 in a fixed order: halves of each block onto each other, then block
    after block.

    A plain sum would depend on the number of threads, and with it every later step.
    """
    squares = momentum.square().double().flatten()
    piles = torch.nn.functional.pad(squares, (0, -len(squares) % BLOCK)).view(-1, BLOCK)
    while piles.shape[1] > 1:
        half = piles.shape[1] // 2
        piles = piles[:, :half] + piles[:, half:]
    return float(piles[:, 0].cpu().numpy().sum()) / momentum.numel()
