"""p̄ = Σ_k w_k·p_k: what parts with weights say together, and how far they disagree.

The parts of a pool are the samples of its members; a member is a run of consecutive parts. All that
stands here is exact for a mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import LangevinError

FEWEST = 500
"""Tokens of validation to weigh members by: dependent as they are, fewer tell too little."""
BLOCKS, SHORTEST = 100, 200
"""Of a text, at most, for the error of a gain; and how many tokens each has at least."""
ROUNDS, STILL = 2000, 1e-7
"""Of EM at most, and the change of a weight at which it has arrived."""


@dataclass(frozen=True)
class Mixture:
    """What a mixture says of each item; its disagreement in nats, in two parts."""

    log_probs: Tensor
    """log p̄, [..., V]."""
    entropy: Tensor
    """H[p̄], [...]."""
    between: Tensor
    """H[p̄] − Σ_m w_m·H[p̄_m]: what the members disagree about."""
    within: Tensor
    """Σ_m w_m·(H[p̄_m] − Σ_s w_s|m·H[p_s]): what the samples of the members disagree about."""

    @property
    def mutual_information(self) -> Tensor:
        return self.between + self.within


@dataclass(frozen=True)
class Spread:
    """A probability under a mixture and its variance over the parts, [...]."""

    p: Tensor
    members: Tensor
    """p̄_m of each member, [members, ...]."""
    between: Tensor
    """Σ_m w_m·(p̄_m − p̄)²."""
    within: Tensor
    """Σ_m w_m·v_m, v_m the variance over the samples of a member (over n−1)."""

    @property
    def std(self) -> Tensor:
        return (self.between + self.within).sqrt()


def log_mixture(log_p: Tensor, weights: Tensor) -> Tensor:
    """log Σ_k w_k·p_k, [parts, ...] → [...]; the weights are [parts] or have the shape of log p."""
    return (log_p.double() + beside(weights, log_p).log()).logsumexp(0)


def mixture(log_p: Tensor, weights: Tensor, sizes: Sequence[int]) -> Mixture:
    """Of log p over V classes, [parts, ..., V], with weights [parts, ...] or [parts]."""
    log_p = log_p.double()
    weights = beside(weights, log_p[..., 0]).expand(log_p.shape[:-1])
    of_members, of_parts = torch.zeros_like(weights[0]), torch.zeros_like(weights[0])
    means = []
    for parts in spans(sizes):
        share = weights[parts].sum(0)
        inner = weights[parts] / share.clamp_min(torch.finfo(torch.float64).tiny)
        means.append((log_p[parts] + inner[..., None].log()).logsumexp(0) + share[..., None].log())
        of_members += share * entropy(means[-1] - share[..., None].log())
        of_parts += (weights[parts] * entropy(log_p[parts])).sum(0)
    together = torch.stack(means).logsumexp(0)
    total = entropy(together)
    return Mixture(together, total, (total - of_members).clamp_min(0),
                   (of_members - of_parts).clamp_min(0))


def part_spread(log_p: Tensor, weights: Tensor, sizes: Sequence[int]) -> Spread:
    """Of the probability of one token, log p [parts, ...], over the parts."""
    p = log_p.double().exp()
    weights = beside(weights, p).expand_as(p)
    members, shares, within = [], [], torch.zeros_like(p[0])
    for parts in spans(sizes):
        share = weights[parts].sum(0)
        inner = weights[parts] / share.clamp_min(torch.finfo(torch.float64).tiny)
        mean = (inner * p[parts]).sum(0)
        degrees = 1 - (inner**2).sum(0)  # (n−1)/n where samples are equal; zero for one
        squares = (inner * (p[parts] - mean) ** 2).sum(0)
        within = within + torch.where(degrees > 1e-9, share * squares / degrees, 0.0)
        members.append(mean)
        shares.append(share)
    each, share = torch.stack(members), torch.stack(shares)
    mean = (share * each).sum(0)
    return Spread(mean, each, (share * (each - mean) ** 2).sum(0), within)


def fit_weights(log_p: Tensor) -> Tensor:
    """The weights of members under which what was observed is most probable, by EM.

    `log_p` [members, tokens] is that of each observed token by each member. The likelihood of a
    mixture is concave in its weights, so there is one answer. Too few tokens: equal weights.
    """
    members, tokens = refuse_no_tokens(log_p)
    equal = torch.full((members,), 1 / members, dtype=torch.float64)
    if members == 1 or tokens < FEWEST:
        return equal
    log_p = log_p.double()
    p, weights = (log_p - log_p.max(0).values).exp(), equal
    for _ in range(ROUNDS):
        before, weights = weights, weights * (p @ (weights @ p).reciprocal()) / tokens
        if (weights - before).abs().max() < STILL:
            break
    return weights / weights.sum()


def paired_gain(
    nll: Tensor, baseline: Tensor, *, in_order: bool = True
) -> tuple[float, float | None]:
    """By how much nll is below the baseline, in the mean, and the standard error of that.

    Both are of the same items. Tokens of a text stand in order and depend on their neighbours, so
    that the error is that over blocks of the text; that of other items is over each of them. None
    where there are too few.
    """
    if nll.shape != baseline.shape or nll.dim() != 1 or not len(nll):
        raise LangevinError(f"expected two vectors over the same tokens, got {list(nll.shape)} and "
                            f"{list(baseline.shape)}; score both on one text")
    difference = baseline.double() - nll.double()
    count = min(BLOCKS, len(nll) // SHORTEST) if in_order else len(nll)
    mean = difference.mean().item()
    if count < 2:
        return mean, None
    whole = difference[: len(nll) // count * count].view(count, -1).mean(1)
    return mean, whole.std().item() / math.sqrt(count)


def spans(sizes: Sequence[int]) -> list[slice]:
    """Where the parts of each member are."""
    ends = torch.tensor(sizes).cumsum(0).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def beside(weights: Tensor, log_p: Tensor) -> Tensor:
    """Weights [parts] or [parts, ...] with as many axes as log p."""
    return weights.view(*weights.shape, *[1] * (log_p.dim() - weights.dim())).double()


def entropy(log_p: Tensor) -> Tensor:
    """In nats, over the last axis; what has no probability adds nothing."""
    p = log_p.exp()
    return -torch.where(p > 0, p * log_p, 0.0).sum(-1)


def refuse_no_tokens(log_p: Tensor) -> tuple[int, int]:
    if log_p.dim() != 2 or not log_p.numel():
        raise LangevinError(f"expected log p of tokens by each member, [members, tokens], got the "
                            f"shape {list(log_p.shape)}; score one text by all members")
    return log_p.shape[0], log_p.shape[1]
