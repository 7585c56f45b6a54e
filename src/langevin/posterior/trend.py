"""Do predictions drift? A test for a monotone trend over the draws within chains."""

from __future__ import annotations

import math

import numpy as np

from .diagnostics import Array, autocorrelation

ALARM = 0.01
"""p value from which a trend is believed: so often independent draws are said to drift."""
ORDERS = 1_999
"""Random orders of the draws that the order they came in is held against."""
ENOUGH = (6, 4)
"""Blocks of one chain, and of each of several, with which p can get below `ALARM`: 2·2/6! for one
chain, 2·2/(4!)² for two."""


def trend(predictions: Array) -> float:
    """p value of a monotone trend in predictions [predictions, chains, draws]; NaN if none varies.

    Spearman's correlation with time, summed over chains, is held against that of the same draws in
    random orders, the same order for all predictions, so that it does not matter how these depend
    on each other. Twice: of the first prediction (the held-out log-likelihood), and of all of them
    (mean square); p is twice the smaller of the two. Exact for independent draws: p ≤ 1 % in 1 % of
    cases.

    Draws that depend on each other wander, which can look like a trend. They are averaged in blocks
    of their correlation time, as far as enough blocks are left. AR(1) chains that are ten times as
    long as their correlation time then give p ≤ 1 % in some 5 % of cases (measured, up to ρ = .7);
    shorter ones more often, and whether those drift nobody can tell.
    """
    predictions = np.asarray(predictions, float)
    _, chains, draws = predictions.shape
    length = block_length(predictions)
    blocks = draws // length
    last = ranked(predictions)[..., draws - blocks * length :]
    ranks = standardised(ranked(last.reshape(-1, chains, blocks, length).mean(-1)))
    if not ranks.any():
        return math.nan
    clock = standardised(np.arange(blocks, dtype=float))
    orders = np.broadcast_to(np.arange(blocks), (ORDERS, chains, blocks))
    shuffled = np.random.default_rng(0).permuted(orders, axis=-1)
    times = np.concatenate([np.broadcast_to(clock, (1, chains, blocks)), clock[shuffled]])
    spearman = times.reshape(len(times), -1) @ ranks.reshape(len(ranks), -1).T / blocks
    p = [extremity(np.abs(spearman[:, 0])), extremity(np.square(spearman).mean(1))]
    return min(1.0, 2 * min(p))


def extremity(statistic: Array) -> float:
    """Share of all orders in which it is as large as in the first, which is the true one."""
    return float((statistic >= statistic[0] * (1 - 1e-9)).mean())


def block_length(predictions: Array) -> int:
    """The correlation time of ranks around their straight trend, as far as blocks suffice.

    From the first lag as of an AR(1) process, corrected by how much taking out a line lowers it:
    E r₁ ≈ ρ − (2 + 4ρ)/n. Ranks of a strictly monotone series are a line: nothing is left, length
    1.
    """
    _, chains, draws = predictions.shape
    rest = without_line(ranked(predictions))
    moving = rest[np.square(rest).sum((1, 2)) > 1e-9 * draws]
    if not len(moving) or draws <= 2 * ENOUGH[1]:
        return 1
    first = float(np.median([autocorrelation(part, 1)[1] for part in moving]))
    rho = min(max((draws * first + 2) / (draws - 4), 0.0), 0.99)
    longest = draws // ENOUGH[chains > 1]
    return int(max(1, min(math.ceil((1 + rho) / (1 - rho) - 0.25), longest)))


def ranked(values: Array) -> Array:
    """Ranks along the last axis; equal values share theirs."""
    below = (values[..., None, :] < values[..., :, None]).sum(-1)
    level = (values[..., None, :] == values[..., :, None]).sum(-1)
    return np.asarray(below + (level - 1) / 2, float)


def standardised(values: Array) -> Array:
    """Mean 0 and standard deviation 1 along the last axis; constants become 0."""
    centered = values - values.mean(-1, keepdims=True)
    spread = centered.std(-1, keepdims=True)
    scaled = np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 0)
    return np.asarray(scaled, float)


def without_line(values: Array) -> Array:
    """What is left of each series when its straight line is taken out."""
    clock = standardised(np.arange(values.shape[-1], dtype=float))
    centered = values - values.mean(-1, keepdims=True)
    slope = (centered @ clock)[..., None] / len(clock)
    return np.asarray(centered - slope * clock, float)
