"""Is a probability of 0.8 right in 8 of 10 cases? Scores of averaged predictions against what was
true.

`probabilities` is [items, classes], `labels` the true class of each item. Where only the answer
counts, and for language models, where all classes do not fit in memory, `confidence` (the
probability of the answer) and `correct` (whether it was right) are [items].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import LangevinError
from .uncertainty import check_classes


def nll(log_probs: Tensor, labels: Tensor) -> float:
    """−1/N Σ_i log p_i(y_i), in nats per item, from averaged log-probabilities (log of the mean,
    not mean of logs)."""
    check_classes(labels, filled(log_probs))
    return -log_probs.double().gather(1, labels.long()[:, None]).mean().item()


def brier(probabilities: Tensor, labels: Tensor) -> float:
    """1/N Σ_i Σ_c (p_i(c) − [c = y_i])²: summed over classes, so from 0 to 2; for two classes twice
    the usual one."""
    p = probabilities.double()
    check_classes(labels, filled(p))
    true = p.gather(1, labels.long()[:, None])[:, 0]
    return (p.square().sum(-1) - true.square() + (1 - true).square()).mean().item()


def top_label(probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """(confidence, correct): the largest probability of each item, and whether it was given to the
    true class."""
    check_classes(labels, filled(probabilities))
    confidence, label = probabilities.max(-1)
    return confidence, label == labels


def accuracy(correct: Tensor) -> float:
    """Share of right answers."""
    return filled(correct).double().mean().item()


@dataclass(frozen=True)
class Reliability:
    """The bins that hold items, from low to high confidence: bin b is (lower, upper]."""

    lower: Tensor
    upper: Tensor
    count: Tensor
    confidence: Tensor
    """Mean confidence in the bin."""
    accuracy: Tensor
    """Share of right answers in the bin."""

    @property
    def ece(self) -> float:
        """Expected calibration error: Σ_b n_b/N · |accuracy_b − confidence_b|."""
        gap = (self.accuracy - self.confidence).abs()
        return float((self.count * gap).sum() / self.count.sum())


def reliability(confidence: Tensor, correct: Tensor, bins: int = 15, *, equal_mass: bool = False) -> Reliability:
    """Accuracy against confidence in bins of equal width, or of (nearly) equal numbers of items.

    With equal mass the edges are quantiles of the confidence; items whose confidence is the same to
    seven digits, as far as float32 tells, stay together, so that the result depends neither on
    their order nor on rounding, and bins may be fewer than asked.
    """
    c, right = check_pairs(confidence, correct)
    if bins < 1:
        raise LangevinError(f"expected at least one bin, got {bins}")
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64, device=c.device)
    ranked = c.round(decimals=7) if equal_mass else c
    if equal_mass:
        ends = torch.tensor([-(-len(c) * b // bins) - 1 for b in range(1, bins + 1)], device=c.device)
        edges = torch.cat([edges[:1], torch.unique(ranked.sort().values[ends])])
    inner = edges[1:-1]
    at = torch.bucketize(ranked, inner)  # edges[b] < c ≤ edges[b + 1]; 0 falls into the first bin
    count = torch.bincount(at, minlength=len(inner) + 1)
    held = count > 0
    mean = [torch.bincount(at, values, minlength=len(inner) + 1)[held] / count[held] for values in (c, right)]
    return Reliability(edges[:-1][held], edges[1:][held], count[held], mean[0], mean[1])


def ece(confidence: Tensor, correct: Tensor, bins: int = 15, *, equal_mass: bool = False) -> float:
    """Expected calibration error of the answers: mean gap between confidence and accuracy over
    bins.

    Guo et al. 2017 with equal widths; equal mass (Nguyen & O'Connor 2015) has no nearly empty bins.
    """
    return reliability(confidence, correct, bins, equal_mass=equal_mass).ece


def auroc(positive: Tensor, negative: Tensor) -> float:
    """P(a positive score is above a negative one) + ½ P(they are equal), exact under ties.

    By ranks r that ties share (Mann–Whitney): (Σ_{i positive} r_i − n₊(n₊+1)/2) / (n₊·n₋).
    """
    both = torch.cat([filled(positive).flatten(), filled(negative).flatten()]).double()
    if both.isnan().any():
        raise LangevinError("expected scores that can be ordered, got NaN")
    _, at, count = torch.unique(both, return_inverse=True, return_counts=True)
    rank = (count.cumsum(0) - (count - 1) / 2.0)[at]
    n, m = positive.numel(), negative.numel()
    return float((rank[:n].sum() - n * (n + 1) / 2) / (n * m))


def calibration_metrics(log_probs: Tensor, labels: Tensor) -> dict[str, float]:
    """All of the above from averaged log-probabilities of [items, classes]."""
    p = log_probs.double().exp()
    confidence, correct = top_label(p, labels)
    return {
        "nll": nll(log_probs, labels), "brier": brier(p, labels), "error": 1 - accuracy(correct),
        "ece": ece(confidence, correct), "ece_equal_mass": ece(confidence, correct, equal_mass=True),
    }


def check_pairs(values: Tensor, correct: Tensor) -> tuple[Tensor, Tensor]:
    """One number and one right-or-wrong per item, in float64."""
    if values.ndim != 1 or values.shape != correct.shape or not len(values):
        raise LangevinError(f"expected one number and one correct or wrong per item, got shapes "
                            f"{list(values.shape)} and {list(correct.shape)}")
    v, right = values.detach().double(), correct.to(values.device).double()
    if v.isnan().any() or not ((right == 0) | (right == 1)).all():
        raise LangevinError("expected numbers that are not NaN, with correct as true or false; "
                            "pass (scores, labels == truth)")
    return v, right


def filled(values: Tensor) -> Tensor:
    if not values.numel():
        raise LangevinError(f"expected at least one item, got shape {list(values.shape)}")
    return values
