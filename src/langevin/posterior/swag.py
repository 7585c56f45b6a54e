"""One network in the middle of the samples: the mean of their weights (SWA), at the price of a
single sample."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import LangevinError
from ..store.samples import Sample


def weight_average(samples: Sequence[Sample]) -> dict[str, Tensor]:
    """θ̄ = 1/S Σ θ_s, summed in float64; what is not a floating-point number is taken from the last
    sample.

    A mean of weights, not of predictions: p(y|x, θ̄) is near 1/S Σ p(y|x, θ_s) only where the
    samples lie in one valley of the loss. Those of different chains do not (hidden units are in
    another order), so they are refused.
    """
    if not samples:
        raise LangevinError("an average of weights needs at least one sample, got none")
    chains = sorted({sample.chain for sample in samples})
    if len(chains) > 1:
        raise LangevinError(
            f"expected samples of one chain, got {len(chains)} chains; the mean of weights of different modes is no "
            f"model, use the samples of one chain"
        )
    last = samples[-1].load()
    total = {name: torch.zeros_like(t, dtype=torch.float64) for name, t in last.items() if t.is_floating_point()}
    for sample in samples:
        tensors = sample.load()
        if {name: t.shape for name, t in tensors.items()} != {name: t.shape for name, t in last.items()}:
            raise LangevinError(f"expected samples of one shape, {sample.path} differs from {samples[-1].path}")
        for name, summed in total.items():
            summed += tensors[name]
    return last | {name: (summed / len(samples)).to(last[name].dtype) for name, summed in total.items()}
