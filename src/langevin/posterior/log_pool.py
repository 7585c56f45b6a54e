"""Members over the same items, pooled in logarithms, draw by draw.

    p_s(c) = softmax_c(Σᵢ aᵢ·log p_{i,s}(c))        for the s-th draw of every member i

The average over s is the answer, so that a pool has draws like any posterior. A member with fewer
draws begins again from its first. The weights a ≥ 0 are chosen by nll on labelled items that no
member was fitted on; their sum is free, which makes it a temperature, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import LangevinError

FLOOR = 1e-9
"""The least probability of a class that a member may give: no member alone can rule one out."""
PULL = 10.0
"""Items that the pull to equal weights stands against: ½·(PULL/n)·Σ(aᵢ − 1/k)² in nats an item."""
FOLDS = 5
WORKED_ON = 1 << 22
"""Numbers of one member that are pooled at once, where the weights are chosen."""


def pool_draws(members: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """log p [draws, items, classes] of the pool, from those of its members."""
    check_members(members)
    if len(weights) != len(members):
        raise LangevinError(f"expected a weight for each of {len(members)} members, got "
                            f"{len(weights)}; weigh these members")
    draws = max(map(len, members))
    mixed = torch.zeros(draws, *members[0].shape[1:])
    for log_p, weight in zip(members, weights, strict=True):
        if weight:
            mixed += weight * floored(log_p).index_select(0, torch.arange(draws) % len(log_p))
    return torch.log_softmax(mixed, -1)


def weigh(members: Mapping[str, Tensor], observed: Tensor) -> dict[str, float]:
    """The weight of each member by name, from log p of items and what was observed of them.

    min over a ≥ 0 of   −1/n Σ log 1/S Σ_s p_s(y)  +  ½·λ·Σ(aᵢ − 1/k)²,   λ = PULL/n
    """
    from scipy.optimize import minimize

    log_ps = list(members.values())
    check_members(log_ps)
    if log_ps[0].shape[1] != len(observed) or not len(observed):
        raise LangevinError(f"expected predictions of the {len(observed):,} items that weigh the "
                            f"members, got those of {log_ps[0].shape[1]:,}; pass the same items")
    equal = 1 / len(log_ps)

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        weights = torch.tensor(values, requires_grad=True)
        pull = 0.5 * PULL / len(observed) * (weights - equal).square().sum()
        pull.backward()  # type: ignore[no-untyped-call]
        total = pull.item()
        for first, last in blocks(log_ps, len(observed)):
            parts = [log_p[:, first:last] for log_p in log_ps]
            loss = nll_of_pool(parts, weights, observed[first:last]) / len(observed)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        assert weights.grad is not None
        return total, weights.grad.numpy()

    start = np.full(len(log_ps), equal)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start))
    return dict(zip(members, map(float, found.x), strict=True))


def weigh_apart(members: Mapping[str, Tensor], observed: Tensor) -> Tensor:
    """log p of what was observed of each item, by a pool that was weighed without its fold."""
    found = torch.empty(len(observed), dtype=torch.float64)
    folds = torch.arange(len(observed)) % FOLDS
    for fold in range(FOLDS):
        own, rest = folds == fold, folds != fold
        if not own.any():
            continue
        weights = weigh({name: log_p[:, rest] for name, log_p in members.items()}, observed[rest])
        found[own] = log_p_of(members, weights, observed, own)
    return found


def log_p_of(
    members: Mapping[str, Tensor], weights: Mapping[str, float], observed: Tensor, where: Tensor
) -> Tensor:  # fmt: skip
    """log 1/S Σ_s p_s(y) of the items where it is asked for."""
    pooled = pool_draws([log_p[:, where] for log_p in members.values()],
                        [weights[name] for name in members]).double()  # fmt: skip
    own = pooled.gather(2, observed[where].expand(len(pooled), -1)[..., None])[..., 0]
    return own.logsumexp(0) - float(np.log(len(own)))


def nll_of_pool(members: Sequence[Tensor], weights: Tensor, observed: Tensor) -> Tensor:
    """−Σ log 1/S Σ_s p_s(y) over some items."""
    draws = max(map(len, members))
    mixed = torch.zeros(draws, *members[0].shape[1:], dtype=weights.dtype)
    for log_p, weight in zip(members, weights, strict=True):
        cycled = floored(log_p).index_select(0, torch.arange(draws) % len(log_p))
        mixed = mixed + weight * cycled.to(weights.dtype)
    each = -F.nll_loss(torch.log_softmax(mixed, -1).flatten(0, 1), observed.repeat(draws),
                       reduction="none").view(draws, -1)  # fmt: skip
    loss: Tensor = (np.log(draws) - each.logsumexp(0)).sum()
    return loss


def blocks(members: Sequence[Tensor], items: int) -> list[tuple[int, int]]:
    """Items from … to, few enough for WORKED_ON."""
    row = max(map(len, members)) * members[0].shape[-1]
    size = max(1, WORKED_ON // row)
    return list(pairwise([*range(0, items, size), items]))


def floored(log_p: Tensor) -> Tensor:
    return log_p.clamp_min(float(np.log(FLOOR)))


def check_members(members: Sequence[Tensor]) -> None:
    """Refuse none, and members over different items or classes."""
    if not members:
        raise LangevinError("expected at least one member of a pool, got none; name some")
    shapes = [list(log_p.shape) for log_p in members]
    if any(len(shape) != 3 or not shape[0] for shape in shapes):
        raise LangevinError(f"expected log-probabilities [draws, items, classes] of each member, "
                            f"got {shapes}; pass at least one draw of each")
    if any(shape[1:] != shapes[0][1:] for shape in shapes):
        raise LangevinError(
            f"expected members over the same items and classes, got "
            f"{' and '.join(str(shape[1:]) for shape in shapes)}; let every member predict all"
        )
