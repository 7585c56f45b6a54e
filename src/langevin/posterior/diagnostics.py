"""How well chains mix, as functions of arrays [chains, draws]: nothing here knows of models or folders.

R̂ (Gelman & Rubin 1992, rank-normalised as in Vehtari et al. 2021) compares the spread between chains with that
within; the effective sample size is how many independent draws would tell the mean as well. Both are ArviZ's.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import LangevinError

Array = NDArray[np.float64]
FEWEST = 4
"""Draws of each chain below which neither number exists."""


def load_arviz() -> Any:
    """ArviZ, loaded on first need: it takes seconds, and only diagnostics use it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it announces its next major version
            return import_module("arviz")
    except ImportError:
        raise LangevinError("diagnostics need ArviZ, which is not installed; install langevin[report]") from None


def effective_sample_size(draws: Array) -> float:
    """Independent draws that all chains [chains, draws] together are worth; NaN where nothing varies.

    For an AR(1) chain x_t = ρ·x_{t−1} + ξ of n draws it is n·(1−ρ)/(1+ρ).
    """
    return float(load_arviz().ess(draws, method="bulk")) if varies(draws) else math.nan


def r_hat(draws: Array) -> float:
    """R̂ of several chains [chains, draws], or of the two halves of one; near 1 when they tell the same story.

    Several chains are split in halves too, so that a common drift shows. One chain needs 2·`FEWEST` draws, several
    need `FEWEST` each; NaN below that and where nothing varies. Chains that are constant, each at its own value,
    have R̂ = ∞.
    """
    draws = np.asarray(draws, float)
    sequences = draws if len(draws) > 1 else halves(draws)
    if not varies(sequences):
        return math.nan
    if not np.ptp(sequences, axis=1).any():
        return math.inf
    return float(load_arviz().rhat(sequences, method="rank" if len(draws) > 1 else "identity"))


def halves(draws: Array) -> Array:
    """[chains, 2n] → [2·chains, n]; the middle draw of an odd number is left out."""
    n = draws.shape[1] // 2
    return np.concatenate([draws[:, :n], draws[:, draws.shape[1] - n :]])


def varies(draws: Array) -> bool:
    """Enough draws, all finite, not all the same."""
    return draws.shape[1] >= FEWEST and bool(np.isfinite(draws).all()) and float(np.ptp(draws)) > 0


def r_hat_limit(draws: int) -> float:
    """What R̂ may be: 1.1, or 1 + 2/n for sequences of n draws, by which independent draws stray themselves.

    With one chain its halves are compared: F = B/W with one degree of freedom passes the limit in 5 % of cases or less.
    """
    return 1 + max(0.1, 2 / draws)


def autocorrelation(draws: Array, lags: int) -> Array:
    """ρ_0 … ρ_lags within chains, averaged over the chains: Σ_t x_t·x_{t+k} / Σ_t x_t², x from its chain's mean."""
    x = draws - draws.mean(1, keepdims=True)
    energy = float((x * x).sum())
    lags = min(lags, draws.shape[1] - 1)
    if energy == 0:
        return np.full(lags + 1, np.nan)
    return np.array([(x[:, : x.shape[1] - k] * x[:, k:]).sum() / energy for k in range(lags + 1)])


def correlation_time(draws: Array) -> float:
    """τ = S/ESS: how many samples are worth one independent draw; at least 1."""
    ess = effective_sample_size(draws)
    return math.nan if math.isnan(ess) else max(1.0, draws.size / ess)


def suggested_thinning(time: float) -> int:
    """Keep every τ-th sample: fewer lose information, more cost time at prediction and add little."""
    return 1 if math.isnan(time) else max(1, round(time))


DIRECTIONS = 4
"""On which the weights of a layer are projected."""


def project(tensor: Tensor, name: str) -> Array:
    """DIRECTIONS projections u·θ/√d of a tensor of d weights on directions of random signs, fixed by its name.

    A random direction sees all weights of a layer at once, so a few of them stand for the layer; E(u·Δ/√d)² = ‖Δ‖²/d.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    flat = tensor.detach().double().flatten().cpu()
    made = []
    for _ in range(DIRECTIONS):
        signs = torch.randint(0, 2, flat.shape, generator=generator, dtype=torch.int8).double().mul_(2).sub_(1)
        made.append(float(signs @ flat) / math.sqrt(len(flat)))
    return np.array(made)


def relative_distance(before: Tensor, after: Tensor) -> float:
    """‖θ′ − θ‖/‖θ′‖: how far a layer went, in units of its own length."""
    norm = float(after.double().norm())
    moved = float((after.double() - before.double()).norm())
    return moved / norm if norm else math.inf if moved else 0.0


def squared_distance(projections: Mapping[str, Array], sizes: Mapping[str, int], lag: int) -> float:
    """Mean ‖θ_{t+lag} − θ_t‖² over t and chains, from projections [chains, draws, count] of each layer."""
    return sum(
        sizes[name] * float(np.square(p[:, lag:] - p[:, : p.shape[1] - lag]).mean()) for name, p in projections.items()
    )


def distance_growth(projections: Mapping[str, Array], sizes: Mapping[str, int]) -> float:
    """log₂ of how the squared distance grows from a lag of a quarter of the run to twice that.

    2: straight on; 1: a random walk; 0: saturated, the chain goes about within one region. NaN if nothing moves.
    """
    quarter = max(1, next(iter(projections.values())).shape[1] // 4)
    near, far = (squared_distance(projections, sizes, lag) for lag in (quarter, 2 * quarter))
    return math.log2(far / near) if near > 0 and far > 0 else math.nan
