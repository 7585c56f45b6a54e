"""The Gaussian prior N(μ, σ²) of every weight, in units of the mean loss."""

from __future__ import annotations

from torch import Tensor


def prior_pull(num_data: float, prior_var: float | None) -> float:
    """1/(Nσ²): how strongly the prior pulls a weight to its mean; 0 under a flat prior."""
    return 0.0 if prior_var is None else 1.0 / (num_data * prior_var)


def drift(
    theta: Tensor, grad: Tensor, num_data: float, prior_var: float | None, prior_mean: Tensor | None
) -> Tensor:
    """ḡ + (θ−μ)/(Nσ²): the gradient of the energy, divided by N. No `prior_mean` is μ = 0."""
    if not (pull := prior_pull(num_data, prior_var)):
        return grad
    return grad + (theta if prior_mean is None else theta - prior_mean) * pull
