"""How well chains mix, as functions of arrays [chains, draws] that know no models or folders.

R̂ (Gelman & Rubin 1992, rank-normalised and split as in Vehtari et al. 2021) compares the spread
between half chains with that within; the effective sample size is how many independent draws would
tell the mean as well.
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
"""Draws of a sequence below which nothing is said of it."""
LIMIT = 1.01
"""What R̂ may be where there are many draws (Vehtari et al. 2021)."""
ALARMS = 0.02
"""Share of cases in which independent draws go beyond `r_hat_limit`."""


def load_arviz() -> Any:
    """ArviZ, loaded on first need: it takes seconds, and only diagnostics use it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it announces its next major version
            return import_module("arviz")
    except ImportError:
        raise LangevinError(
            "diagnostics need ArviZ, which is not installed; install langevin[report]"
        ) from None


def effective_sample_size(draws: Array) -> float:
    """Independent draws that all chains [chains, draws] together are worth; NaN where none vary.

    The least of three: ArviZ's bulk ESS, which also counts the spread between chains and halves;
    what the correlations within the chains allow (`lag_time`), as ArviZ's falls back to n·log₁₀ n
    where chains are short; and n. For an AR(1) chain x_t = ρ·x_{t−1} + ξ, ρ ≥ 0, it is
    n·(1−ρ)/(1+ρ).
    """
    if not varies(draws):
        return math.nan
    bulk = float(load_arviz().ess(draws, method="bulk"))
    return float(np.nanmin([bulk, draws.size / lag_time(draws), draws.size]))


def lag_time(draws: Array) -> float:
    """τ = 1 + 2·Σ ρ_k from the correlations within chains; at least 1.

    Summed over pairs of lags as long as these stay positive, each pair no larger than that before
    (Geyer 1992: initial monotone sequence).
    """
    rho = autocorrelation(draws, draws.shape[1] - 1)
    if np.isnan(rho).any():
        return math.nan
    pairs = np.append(rho, np.zeros(len(rho) % 2)).reshape(-1, 2).sum(1)
    positive = np.minimum.accumulate(pairs).clip(0)
    return max(1.0, 2 * float(positive.sum()) - 1)


def unbiased_time(draws: Array) -> float:
    """The larger of `lag_time` and (1+ρ)/(1−ρ) of an AR(1) process, for chains that are short.

    Taking out the mean of n draws lowers the correlation: E r₁ ≈ ρ − (1 + 3ρ)/n, undone here.
    """
    n = draws.shape[1]
    rho = (n * float(autocorrelation(draws, 1)[1]) + 1) / (n - 3) if n > FEWEST else math.nan
    rho = min(max(rho, 0.0), 0.99)
    return max(lag_time(draws), (1 + rho) / (1 - rho))


def r_hat(draws: Array) -> float:
    """Rank-normalised split R̂ of chains [chains, draws]; near 1 when they tell the same story.

    Chains are split in halves, so that a common drift shows and one chain can be judged: by its
    halves. The larger of two, of the draws and of their distances from the median, which tells
    spreads apart. NaN below 2·`FEWEST` draws and where nothing varies. Sequences that are constant,
    each at its own value, have R̂ = ∞.
    """
    draws = np.asarray(draws, float)
    if draws.shape[1] < 2 * FEWEST or not varies(draws):
        return math.nan
    sequences = halves(draws)
    if not np.ptp(sequences, axis=1).any():
        return math.inf
    folded = np.abs(sequences - np.median(sequences))
    return max(plain_r_hat(normal_scores(sequences)), plain_r_hat(normal_scores(folded)))


def plain_r_hat(sequences: Array) -> float:
    """R̂² = (m−1)/m + B/(m·W): B/m the variance of the means of length m, W the mean variance."""
    length = sequences.shape[1]
    between = float(sequences.mean(1).var(ddof=1))
    within = float(sequences.var(1, ddof=1).mean())
    if not within:
        return math.inf if between else 1.0
    return math.sqrt((length - 1) / length + between / within)


def normal_scores(draws: Array) -> Array:
    """Each value by its rank r among all: Φ⁻¹((r − 3/8)/(n + 1/4)); ties share their mean rank."""
    _, at, count = np.unique(draws, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[at].reshape(draws.shape)
    quantiles = torch.from_numpy((rank - 0.375) / (draws.size + 0.25))
    return np.asarray(torch.special.ndtri(quantiles).numpy(), float)


def r_hat_limit(chains: int, draws: int, predictions: int = 1, time: float = 1.0) -> float:
    """What the largest R̂ of so many predictions may be: 1.01, or more where draws are few.

    Independent draws stray themselves: k = 2·chains sequences of length m have m·R̂² = m−1 + F,
    with F = B/W of an F distribution on k−1 and k·(m−1) degrees of freedom, by ranks nearly so. The
    limit is the quantile that all predictions and both kinds of R̂ together pass in 1 − `ALARMS` of
    cases (Bonferroni). From some hundred draws of four chains on it is the 1.01 of the literature.
    Draws with correlation `time` τ stray by τ·F.
    """
    from scipy.stats import f

    k, m = 2 * chains, draws // 2
    ratio = float(f.isf(ALARMS / (2 * predictions), k - 1, k * (m - 1)))
    return max(LIMIT, math.sqrt((m - 1) / m + time * ratio / m))


def draws_needed(chains: int, predictions: int, limit: float) -> int:
    """Draws of each chain from which `r_hat_limit` is down to this."""
    draws = 2 * FEWEST
    while r_hat_limit(chains, draws, predictions) > limit:
        draws += 2
    return draws


def halves(draws: Array) -> Array:
    """[chains, 2n] → [2·chains, n]; the middle draw of an odd number is left out."""
    n = draws.shape[1] // 2
    return np.concatenate([draws[:, :n], draws[:, draws.shape[1] - n :]])


def varies(draws: Array) -> bool:
    """Enough draws, all finite, not all the same."""
    enough = draws.shape[1] >= FEWEST
    return enough and bool(np.isfinite(draws).all()) and float(np.ptp(draws)) > 0


def autocorrelation(draws: Array, lags: int) -> Array:
    """ρ_0 … ρ_lags within chains, averaged over them: Σ_t x_t·x_{t+k} / Σ_t x_t², x from its mean.

    NaN where no chain moves.
    """
    x = draws - draws.mean(1, keepdims=True)
    energy = float((x * x).sum())
    lags = min(lags, draws.shape[1] - 1)
    if energy == 0:
        return np.full(lags + 1, np.nan)
    n = x.shape[1]
    return np.array([(x[:, : n - k] * x[:, k:]).sum() / energy for k in range(lags + 1)])


def correlation_time(draws: Array) -> float:
    """τ = S/ESS: how many samples are worth one independent draw; at least 1."""
    ess = effective_sample_size(draws)
    return math.nan if math.isnan(ess) else max(1.0, draws.size / ess)


def suggested_thinning(time: float) -> int:
    """Every τ-th sample: fewer lose information, more cost time at prediction and add little."""
    return 1 if math.isnan(time) else max(1, round(time))


DIRECTIONS = 4
"""Number of them, on which the weights of a layer are projected."""


def project(tensor: Tensor, name: str) -> Array:
    """Projections u·θ/√d of d weights on directions of random signs, fixed by the tensor's name.

    A random direction sees all weights of a layer at once, so that a few of them stand for it:
    E(u·Δ/√d)² = ‖Δ‖²/d.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    flat = tensor.detach().double().flatten().cpu()
    projections = []
    for _ in range(DIRECTIONS):
        bits = torch.randint(0, 2, flat.shape, generator=generator, dtype=torch.int8)
        signs = bits.double().mul_(2).sub_(1)
        projections.append(float(signs @ flat) / math.sqrt(len(flat)))
    return np.array(projections)


def relative_distance(before: Tensor, after: Tensor) -> float:
    """‖θ′ − θ‖/‖θ′‖: how far a layer went, in units of its own length."""
    norm = float(after.double().norm())
    moved = float((after.double() - before.double()).norm())
    return moved / norm if norm else math.inf if moved else 0.0


def squared_distance(projections: Mapping[str, Array], sizes: Mapping[str, int], lag: int) -> float:
    """Mean ‖θ_{t+lag} − θ_t‖² over t and chains, from [chains, draws, count] of each layer."""
    return sum(
        sizes[name] * float(np.square(p[:, lag:] - p[:, : p.shape[1] - lag]).mean())
        for name, p in projections.items()
    )


def distance_growth(projections: Mapping[str, Array], sizes: Mapping[str, int]) -> float:
    """log₂ of how the squared distance grows from a lag of a quarter of the run to twice that.

    2: straight on; 1: a random walk; 0: saturated, the chain goes about within one region. NaN if
    nothing moves.
    """
    quarter = max(1, next(iter(projections.values())).shape[1] // 4)
    near, far = (squared_distance(projections, sizes, k * quarter) for k in (1, 2))
    return math.log2(far / near) if near > 0 and far > 0 else math.nan
