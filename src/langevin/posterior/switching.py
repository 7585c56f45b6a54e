"""Weights of a mixture that follow what is read: the posterior of a switching prior, in one loop.

Before each token the part that writes it may change: with a small probability it is drawn anew, by
the weights that validation gave. What follows by Bayes' rule is the fixed share of Herbster and
Warmuth (1998):

    p(x) = Σ_k w_k·p_k(x);   w_k ← (1 − a)·w_k·p_k(x)/p(x) + a·v_k,   v from validation, a the share
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ..models.counts_rows import array, run
from ..samplers.cpu.table import Kernel
from .mixture import log_mixture

SHARE = 0.005
"""How often the prior draws a part anew, where validation was not asked."""
SHARES = (0.005, 0.02, 0.05, 0.1, 0.2)
"""Among which validation chooses."""


def follow(
    log_p: Tensor, prior: Tensor, weights: Tensor | None = None, share: float = SHARE
) -> tuple[Tensor, Tensor]:
    """Weights with which each token is foreseen, and those after the last.

    `log_p` [parts, tokens]; `prior` [parts] from validation; `weights` those before the first
    token, the prior where nothing was read yet. Returns [parts, tokens] and [parts].
    """
    columns = log_p.double().T.contiguous().numpy()
    prior = prior.double().contiguous()
    now = (prior if weights is None else weights.double()).clone().contiguous()
    trace = np.empty(columns.size)
    run(switch, columns.ravel(), prior.numpy(), now.numpy(), np.array([share]), trace)
    return torch.from_numpy(trace).view(-1, len(prior)).T, now


def fit_share(log_p: Tensor, prior: Tensor) -> float:
    """The share under which what was read is most probable, of log p [parts, tokens]."""
    return max(SHARES, key=lambda share: follow_log_p(log_p, prior, share))


def follow_log_p(log_p: Tensor, prior: Tensor, share: float) -> float:
    """log p of a text by a mixture whose weights follow it."""
    return float(log_mixture(log_p, follow(log_p, prior, share=share)[0]).sum())


@Kernel
def switch(data):
    """Words: log p [tokens · parts], the prior, the weights at hand [parts], the share, the weights
    of each token [tokens · parts] to be filled."""
    log_p, prior, weights = (
        array(data, 2, np.float64), array(data, 4, np.float64), array(data, 6, np.float64)
    )  # fmt: skip
    share, trace = array(data, 8, np.float64)[0], array(data, 10, np.float64)
    parts = len(prior)
    for first in range(0, len(log_p), parts):
        top = log_p[first]
        for k in range(parts):
            trace[first + k] = weights[k]
            top = max(top, log_p[first + k])
        total = 0.0
        for k in range(parts):
            weights[k] *= math.exp(log_p[first + k] - top)
            total += weights[k]
        for k in range(parts):
            weights[k] = (1 - share) * weights[k] / total + share * prior[k]
