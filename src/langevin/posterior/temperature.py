"""The temperature that a chain has, to hold against the one that was injected.

At temperature T the law of the weights is exp(−U/T), U = N·(mean negative log-likelihood) +
‖θ‖²/(2σ²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .diagnostics import Array, effective_sample_size


@dataclass(frozen=True)
class Estimate:
    """A temperature and its standard error."""

    value: float
    error: float


def virial(theta: Tensor, grad: Tensor, *, num_data: float, prior_var: float | None) -> float:
    """θ·∇U = N·θ·ḡ + ‖θ‖²/σ², for the gradient ḡ of the mean negative log-likelihood; None is a
    flat prior.

    θ is counted from the mean of its prior.
    """
    theta, grad = theta.detach().double().flatten(), grad.detach().double().flatten()
    return num_data * float(theta @ grad) + (float(theta @ theta) / prior_var if prior_var is not None else 0.0)


def configurational_temperature(virials: Array, dimensions: int) -> Estimate:
    """T = ⟨θ·∇U⟩/d over draws [chains, draws] of the virial of d weights.

    Integrating by parts, E[θ·∇U] = d·T for every U that confines θ, whatever its shape or centre.
    So it holds for all weights together and for each layer alone. It fails where U does not
    confine: with a flat prior, directions that the data leave flat give 0 instead of T and nothing
    is normalised. The draws have to cover exp(−U/T): a run too short to spread that far reads
    colder. An unbiased estimate of ḡ keeps the mean and widens the error.

    The error is the spread over √ESS, as consecutive draws depend on each other.
    """
    values = np.asarray(virials, float) / dimensions
    ess = effective_sample_size(values)
    independent = values.size if math.isnan(ess) else min(ess, values.size)
    return Estimate(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(independent))


def kinetic_temperature(
    momentum: Tensor, *, lr: float, num_data: float, friction: float | Tensor, gain: Tensor | None = None
) -> Estimate:
    """T = (1 − α/2)·⟨m²/G⟩·N/lr over the weights of one tensor (G = 1 without a preconditioner).

    m carries the learning rate, so that its law at temperature T is N(0, lr·G·T/N). It is read half
    a step after the positions, 1/(1 − α/2) too warm for friction α, which the first factor undoes.
    The error, T·√(2/d), takes the momenta of the d weights for independent.
    """
    squares = momentum.detach().double().square()
    if gain is not None:
        squares = squares / gain.detach().double()
    alpha = friction.detach().double() if isinstance(friction, Tensor) else torch.tensor(friction, dtype=torch.double)
    value = float(((1 - alpha / 2) * squares).mean()) * num_data / lr
    return Estimate(value, value * math.sqrt(2 / momentum.numel()))


def pooled(parts: list[tuple[Estimate, int]]) -> Estimate:
    """One temperature from those of several independent tensors, weighted by their numbers of
    weights."""
    total = sum(size for _, size in parts)
    value = sum(part.value * size for part, size in parts) / total
    return Estimate(value, math.sqrt(sum((part.error * size) ** 2 for part, size in parts)) / total)
