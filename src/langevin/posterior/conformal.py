"""Sets of classes that hold the true one with a promised probability: split conformal prediction.

With a score s(x, c) that grows as class c fits text x worse, and n labelled items that no fit has
seen, let q be the k-th smallest of s(xᵢ, yᵢ), k = ⌈(n + 1)(1 − α)⌉. The set of a new item is
{c : s(x, c) ≤ q}. If the new item is exchangeable with the n, then

    1 − α ≤ P(y ∈ set) (≤ 1 − α + 1/(n + 1) where no scores are equal)

on average over the n items and the new one; whatever the model, its samples or its calibration.
(Vovk et al. 2005; Sadinle et al. 2019 for "least", Romano et al. 2020 for "adaptive".)
Of a single set of n items the coverage is Beta(k, n + 1 − k). The label itself always stands in its
set, which can only add to the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import LangevinError
from .calibration import filled
from .uncertainty import check_classes


def least(probabilities: Tensor) -> Tensor:
    """s(x, c) = 1 − p̄(c): the least sets on average, small where the model is sure."""
    return 1 - probabilities.double()


def adaptive(probabilities: Tensor) -> Tensor:
    """s(x, c) = Σ p̄ of c and of all classes above it: evens out easy and hard items, larger sets.

    Not randomised: the same text has the same set, which makes them a little larger.
    """
    p, order = probabilities.double().sort(dim=-1, descending=True, stable=True)
    return torch.empty_like(p).scatter_(-1, order, p.cumsum(-1))


SCORES: dict[str, Callable[[Tensor], Tensor]] = {"least": least, "adaptive": adaptive}


LEAST_ALPHA = 1e-9
"""Below it no number of items that anybody has would do."""


@dataclass(frozen=True)
class SetRule:
    """Which classes stand in the set of a text, and behind it the items it was learned on."""

    method: str
    alpha: float
    """The true class is missing from at most this share of the sets."""
    threshold: float
    """The largest score of a class in a set."""
    items: int

    def __post_init__(self) -> None:
        refuse_method(self.method)
        refuse_alpha(self.alpha)

    def sets(self, probabilities: Tensor) -> Tensor:
        """Whether each class stands in the set of each item: averaged probabilities → bool."""
        if not len(probabilities):
            return torch.zeros(probabilities.shape, dtype=torch.bool)
        inside = SCORES[self.method](probabilities) <= self.threshold
        return inside.scatter_(-1, probabilities.argmax(-1, keepdim=True), True)


def learn_sets(
    probabilities: Tensor, labels: Tensor, *, alpha: float = 0.1, method: str = "least"
) -> SetRule:
    """The rule whose sets hold the true class of new items with probability 1 − α.

    `probabilities` are averaged over the samples, [items, classes]; `labels` the true classes of
    these items, which must have had no part in any fit.
    """
    refuse_method(method)
    refuse_alpha(alpha)
    check_classes(labels, filled(probabilities))
    items = len(labels)
    rank = rank_of(items, alpha)
    if rank > items:
        raise LangevinError(
            f"sets that miss {alpha:g} of the true classes cannot be promised on {items} "
            f"validation items, expected at least {fewest_items(alpha)}; bring more of them or "
            f"allow alpha {least_alpha(items):.4f}"
        )
    true = SCORES[method](probabilities).gather(1, labels.long()[:, None])[:, 0]
    return SetRule(method, alpha, float(true.sort().values[rank - 1]), items)


@dataclass(frozen=True)
class SetScores:
    """Sets on items whose classes are known and that the rule was not learned on."""

    items: int
    covered: int
    coverage: float
    size: float
    """Mean number of classes in a set."""
    single: float
    """Share of the sets that are one class."""
    chance: float
    """P(as few covered or fewer) if all that was promised holds; small: it does not."""


def score_sets(rule: SetRule, probabilities: Tensor, labels: Tensor) -> SetScores:
    """Coverage and size of the sets, and how likely so little coverage is by chance.

    Given the n items of the rule, the covered ones of m new items are binomial with a coverage that
    is Beta(k, n + 1 − k): P(j of m covered) = C(m, j)·B(k + j, n + 1 − k + m − j)/B(k, n + 1 − k).
    """
    check_classes(labels, filled(probabilities))
    inside = rule.sets(probabilities)
    items, sizes = len(labels), inside.sum(-1)
    covered = int(inside.gather(1, labels.long()[:, None]).sum())
    return SetScores(
        items, covered, covered / items, float(sizes.double().mean()),
        float((sizes == 1).double().mean()),
        beta_binomial_cdf(covered, items, rank_of(rule.items, rule.alpha), rule.items),
    )  # fmt: skip


def beta_binomial_cdf(covered: int, items: int, rank: int, learned: int) -> float:
    """P(J ≤ covered) of m = `items`, where the rank-th smallest of `learned` is the threshold."""
    j = torch.arange(covered + 1, dtype=torch.float64)
    a, b = float(rank), float(learned + 1 - rank)
    log_choose = math.lgamma(items + 1) - torch.lgamma(j + 1) - torch.lgamma(items - j + 1)
    log_beta = torch.lgamma(a + j) + torch.lgamma(b + items - j) - math.lgamma(a + b + items)
    whole = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return min(1.0, math.exp(float((log_choose + log_beta - whole).logsumexp(0))))


def rank_of(items: int, alpha: float) -> int:
    """⌈(n + 1)(1 − α)⌉; 30·0.9 is a little above 27 in floating point."""
    return max(1, math.ceil((items + 1) * (1 - alpha) - 1e-9))


def fewest_items(alpha: float) -> int:
    """The least n with ⌈(n + 1)(1 − α)⌉ ≤ n."""
    return max(1, math.ceil((1 - alpha) / alpha - 1e-9))


def least_alpha(items: int) -> float:
    """The least α that so many items can promise, rounded to where it will not be refused."""
    return math.ceil(1e4 / (items + 1) - 1e-9) / 1e4


def refuse_alpha(alpha: float) -> None:
    if not LEAST_ALPHA <= alpha < 1:
        raise LangevinError(
            f"alpha must be between 0 and 1, got {alpha:g}; 0.1 promises the true class in 90 % of "
            f"the sets"
        )


def refuse_method(method: str) -> None:
    if method not in SCORES:
        raise LangevinError(f"method must be one of {', '.join(SCORES)}, got {method!r}")
