"""Answer or hand over: thresholds on an uncertainty score, learned on validation data, with a
promise that holds later.

An answer is accepted when its score is *below* the threshold (scores grow with uncertainty).
Coverage is the share of accepted answers, risk the share of wrong ones among them.

The promise of `learn_threshold` comes from a union bound over a fixed grid of coverages. Why not
fixed-sequence testing from the most certain answers outward, which needs no division by the size of
the grid: its proof wants thresholds fixed before the scores are seen, or a risk that rises with the
threshold (where it first crosses the target is then a fixed point). Scores of networks need not
rank errors so well, and one unlucky error among the few most certain answers ends the sequence. The
union bound also holds for all coverages at once, so that what is reachable can be told when the
target is not. Why not SGR (Geifman & El-Yaniv 2017): it too divides the chance of failure, by the
number of steps of a bisection over thresholds that presumes a rising risk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import LangevinError
from .calibration import check_pairs
from .scores import Result
from .uncertainty import ItemSummary, statistics_of, uncertainty_score

COVERAGES = tuple(k / 10 for k in range(1, 11))
"""The coverages that `learn_threshold` tries, fixed before the labels are seen. A finer grid finds
more coverage on thousands of validation items, a coarser one on hundreds."""

Point = tuple[float, int, int]
"""Threshold, accepted answers, errors among them."""


@dataclass(frozen=True)
class RiskCoverage:
    """Coverage and risk at every threshold that makes a difference, from the most certain answers
    outward."""

    score: Tensor
    """The largest accepted score; answers of the same score come in together."""
    coverage: Tensor
    risk: Tensor

    @property
    def aurc(self) -> float:
        """Area under the curve, Σ_k (coverage_k − coverage_{k−1})·risk_k: without ties the mean
        risk over 1..N answers.

        A constant score gives the error of all answers, as does random order on average.
        """
        width = torch.diff(self.coverage, prepend=self.coverage.new_zeros(1))
        return float((width * self.risk).sum())


def risk_coverage(scores: Tensor, correct: Tensor) -> RiskCoverage:
    """Risk against coverage as the threshold rises through the distinct scores."""
    s, right = check_pairs(scores, correct)
    score, at, count = torch.unique(s, return_inverse=True, return_counts=True)
    accepted = count.cumsum(0).double()
    wrong = torch.bincount(at, 1 - right, minlength=len(score)).cumsum(0)
    return RiskCoverage(score, accepted / len(s), wrong / accepted)


def best_statistic(predictive: ItemSummary, labels: Tensor) -> tuple[str, dict[str, float]]:
    """The statistic whose ranking has the least area under the risk-coverage curve, and the area of
    each.

    To learn a threshold for the winner on the same data, pass the number of areas as `comparisons`
    to
    `learn_threshold`.
    """
    correct = predictive.label == labels.to(predictive.label)
    scores = {name: uncertainty_score(name, predictive) for name in statistics_of(predictive.samples)}
    areas = {name: risk_coverage(score, correct).aurc for name, score in scores.items()}
    return min(areas, key=lambda name: areas[name]), areas


@dataclass(frozen=True)
class DecisionRule(Result):
    """A threshold with what it promises and the validation numbers behind it."""

    statistic: str
    threshold: float
    """Scores below it are accepted; infinity accepts every answer."""
    target: str
    """"risk" (at most `value`, with `confidence`), "coverage" (about `value`) or "cost" (of an
    error, in persons); the last two promise nothing about errors."""
    value: float
    confidence: float | None
    items: int
    accepted: int
    errors: int
    risk_bound: float | None
    """Upper bound of the risk on new data, with `confidence`; None where none is promised."""

    def __post_init__(self) -> None:
        if self.target not in ("risk", "coverage", "cost") or math.isnan(self.threshold):
            raise LangevinError(f"expected a threshold for risk or coverage, got {self.threshold} for {self.target!r}")
        if not 0 < self.accepted <= self.items or not 0 <= self.errors <= self.accepted:
            raise LangevinError(f"expected errors ≤ accepted ≤ items with some accepted, got {self.errors} errors, "
                                f"{self.accepted} accepted, {self.items} items")

    @property
    def coverage(self) -> float:
        """Share of the validation answers that were accepted."""
        return self.accepted / self.items

    @property
    def risk(self) -> float:
        """Share of errors among the accepted validation answers."""
        return self.errors / self.accepted

    def decide(self, scores: Tensor) -> Tensor:
        """Which answers to accept. A score that is NaN is never accepted."""
        return scores < self.threshold

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with coverage and risk; an infinite threshold is None."""
        threshold = self.threshold if math.isfinite(self.threshold) else None
        known = super().to_dict() | {"threshold": threshold}
        return known | {"coverage": self.coverage, "risk": self.risk}

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> DecisionRule:
        """The rule that `to_dict` told."""
        try:
            threshold = math.inf if record["threshold"] is None else float(record["threshold"])
            values = {name: record[name] for name in DecisionRule.__dataclass_fields__}
            return DecisionRule(**(values | {"threshold": threshold}))
        except (ValueError, KeyError, TypeError) as error:
            raise LangevinError(f"expected a decision rule, it cannot be read: {error!r}") from None


def learn_threshold(
    scores: Tensor, correct: Tensor, *, risk: float = 0.05, confidence: float = 0.95, statistic: str = "entropy",
    comparisons: int = 1,
) -> DecisionRule:
    """The largest threshold whose risk on new data is at most `risk`, except with probability 1 −
    confidence.

    Method: Bonferroni (union bound) over a fixed grid of J coverages with exact binomial tests. For
    coverage c the threshold is t = the (k+1)-th smallest score, k = ⌊cN⌋, and the answers strictly
    below t are accepted. Given t they are independent draws from all answers below t, so their
    errors are Binomial(n, R(t)) exactly, ties or not, and P(R(t) > risk and P(Bin(n, risk) ≤
    errors) ≤ δ) ≤ δ. With δ = (1 − confidence)/(J·comparisons) at each of the J points all the
    promises hold together, so the largest coverage that passes may be taken.

    The promise is about answers drawn as the validation items were, independently: validation data
    that chose the model, or tokens of one text, weaken it. `comparisons` is how many statistics
    were compared on these data.
    """
    s, right = finite_pairs(scores, correct)
    check_share("risk", risk)
    check_share("confidence", confidence)
    if comparisons < 1:
        raise LangevinError(f"expected comparisons to count the statistics compared, 1 or more, got {comparisons}")
    points = grid(s, right)
    delta = (1 - confidence) / (len(points) * comparisons)
    for threshold, accepted, errors in reversed(points):
        if binomial_cdf(errors, accepted, risk) <= delta:
            bound = risk_upper_bound(errors, accepted, delta)
            return DecisionRule(statistic, threshold, "risk", risk, confidence, len(s), accepted, errors, bound)
    bound, accepted, errors = least_bound(points, delta)
    least = math.ceil(bound * 1e4) / 1e4  # rounded down it would be refused again
    raise LangevinError(
        f"a risk of {risk:g} cannot be promised with confidence {confidence:g} on {len(s)} validation items: the least "
        f"that can is {least:.4f}, at coverage {accepted / len(s):.3f} ({errors} errors in {accepted}); "
        f"allow more risk, less confidence, or bring more validation data"
    )


def least_bound(points: list[Point], delta: float) -> tuple[float, int, int]:
    """The smallest upper bound of the risk over the grid, with the numbers of accepted answers and
    errors there."""
    bound, at = 1.0, points[-1]
    for point in reversed(points):
        if binomial_cdf(point[2], point[1], bound) < delta:  # only then is its bound smaller
            bound, at = risk_upper_bound(point[2], point[1], delta), point
    return bound, at[1], at[2]


def threshold_at_coverage(
    scores: Tensor, correct: Tensor, *, coverage: float = 0.9, statistic: str = "entropy"
) -> DecisionRule:
    """The threshold that accepts at least this share of the validation answers, and as few more as
    ties allow.

    The rule tells the coverage and risk realised on validation; it promises nothing about either on
    new data.
    """
    s, right = finite_pairs(scores, correct)
    if not 0 < coverage <= 1:
        raise LangevinError(f"coverage must be above 0 and at most 1, got {coverage:g}")
    ordered = s.sort().values
    # 0.07 · 100 is a little above 7 in floating point
    rank = max(1, math.ceil(coverage * len(s) - 1e-9))
    last = ordered[rank - 1]
    above = ordered[ordered > last]
    threshold = float(above[0]) if len(above) else math.inf
    below = s < threshold
    errors = int((1 - right[below]).sum())
    return DecisionRule(
        statistic, threshold, "coverage", coverage, None, len(s), int(below.sum()), errors, risk_bound=None
    )


def threshold_at_cost(
    scores: Tensor, correct: Tensor, *, cost: float, statistic: str = "entropy"
) -> DecisionRule:
    """The threshold of least Σ cost·[accepted and wrong] + [sent to a person] on validation.

    A wrong answer costs `cost` times what a person costs. It promises nothing about new data.
    """
    s, right = finite_pairs(scores, correct)
    if not (math.isfinite(cost) and cost > 0):
        raise LangevinError(f"cost must be above 0, got {cost:g}; 10: as much as ten answers by a "
                            f"person")
    curve = risk_coverage(s, right)
    accepted = (curve.coverage * len(s)).round()
    wrong = (curve.risk * accepted).round()
    best = int((cost * wrong + (len(s) - accepted)).argmin())
    if cost * wrong[best] >= accepted[best]:
        raise LangevinError(f"no answer is worth its risk at a cost of {cost:g} persons for each "
                            f"error on {len(s)} validation items; send all to a person, or name a "
                            f"lower cost")
    above = curve.score[best + 1 :]
    threshold = float(above[0]) if len(above) else math.inf
    return DecisionRule(statistic, threshold, "cost", cost, None, len(s), int(accepted[best]),
                        int(wrong[best]), risk_bound=None)


def grid(scores: Tensor, right: Tensor) -> list[Point]:
    """(threshold, accepted, errors) at each of COVERAGES, outward; the ranks looked at depend on N
    alone.

    Ties may leave fewer accepted than asked, even none: such a point can promise nothing and still
    counts in J.
    """
    total = len(scores)
    ordered, order = scores.sort()
    wrong = torch.cat([right.new_zeros(1), (1 - right[order]).cumsum(0)])
    points = []
    for k in sorted({math.floor(c * total + 1e-9) for c in COVERAGES} - {0}):
        threshold = math.inf if k == total else float(ordered[k])
        accepted = total if k == total else int(torch.searchsorted(ordered, ordered[k]))
        points.append((threshold, accepted, int(wrong[accepted])))
    return points


def binomial_cdf(successes: int, trials: int, p: float) -> float:
    """P(X ≤ k) for X ~ Binomial(n, p) = Σ_{i≤k} exp(log C(n,i) + i log p + (n−i) log(1−p)), summed
    in log space."""
    if successes >= trials or p <= 0:
        return 1.0
    return binomial_tail(log_choose(successes, trials), trials, p)


def log_choose(successes: int, trials: int) -> Tensor:
    """log C(n, i) for i = 0..k."""
    i = torch.arange(successes + 1, dtype=torch.float64)
    return math.lgamma(trials + 1) - torch.lgamma(i + 1) - torch.lgamma(trials - i + 1)


def binomial_tail(choose: Tensor, trials: int, p: float) -> float:
    if p >= 1:
        return 0.0
    i = torch.arange(len(choose), dtype=torch.float64)
    log_terms = choose + i * (math.log(p) - math.log1p(-p)) + trials * math.log1p(-p)
    return min(1.0, math.exp(float(log_terms.logsumexp(0))))


def risk_upper_bound(errors: int, trials: int, delta: float) -> float:
    """Clopper–Pearson: the p at which P(Bin(trials, p) ≤ errors) = δ; the true risk is below,
    except with chance δ."""
    if errors >= trials:
        return 1.0
    choose, low, high = log_choose(errors, trials), errors / trials, 1.0
    while high - low > 1e-10:  # bisection that ends on the safe side
        middle = (low + high) / 2
        low, high = (low, middle) if binomial_tail(choose, trials, middle) <= delta else (middle, high)
    return high


def check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise LangevinError(f"{name} must be between 0 and 1, got {value:g}")


def finite_pairs(scores: Tensor, correct: Tensor) -> tuple[Tensor, Tensor]:
    s, right = check_pairs(scores, correct)
    if not s.isfinite().all():
        raise LangevinError("expected finite scores, got infinity")
    return s, right
