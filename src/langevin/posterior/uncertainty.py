"""What the samples agree on and what they do not: spread, entropy, mutual information of classes.

With S samples, p_s(c) the probability that sample s gives to class c, and p̄ = 1/S Σ_s p_s:

    total      H[p̄]  = −Σ_c p̄(c) log p̄(c)      all that is uncertain about the answer, in nats
    aleatoric  1/S Σ_s H[p_s]                    what would remain if the weights were known
    epistemic  I = H[p̄] − 1/S Σ_s H[p_s] = 1/S Σ_s KL(p_s ‖ p̄) ≥ 0
                                                 mutual information of answer and weights
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ..errors import LangevinError


@dataclass(frozen=True)
class ItemSummary:
    """What is said of each item, whichever class was observed: every tensor is [items]."""

    label: Tensor
    """argmax of p̄."""
    confidence: Tensor
    """The averaged probability of the label: max p̄."""
    label_std: Tensor
    """Standard deviation of the label's probability over the samples (n−1; zero for one sample)."""
    total: Tensor
    aleatoric: Tensor
    epistemic: Tensor
    """Total less aleatoric; rounding below zero is cut off, and one sample has none."""
    disagreement: Tensor
    """Share of the samples whose own argmax is another label."""
    samples: int

    @staticmethod
    def cat(pieces: Iterable[ItemSummary]) -> ItemSummary:
        """Batches one after another as one; all must come from the same number of samples."""
        pieces = list(pieces)
        counts = sorted({piece.samples for piece in pieces})
        if len(counts) != 1:
            raise LangevinError(
                f"expected summaries over the same number of samples, got "
                f"{counts or 'no summaries'}; let every sample predict every batch"
            )
        names = [field.name for field in fields(ItemSummary) if field.name != "samples"]
        joined = {name: torch.cat([getattr(piece, name) for piece in pieces]) for name in names}
        return ItemSummary(**joined, samples=counts[0])


@dataclass(frozen=True)
class Predictive(ItemSummary):
    """Averaged class predictions of some items: their summary, and all classes."""

    probabilities: Tensor
    """p̄, [items, classes]."""
    std: Tensor
    """Standard deviation of p_s(c) over the samples (n−1; zero for one sample), the same shape."""

    @staticmethod
    def cat(pieces: Iterable[ItemSummary]) -> Predictive:
        """Pieces one after another as one; all of the same number of samples and of classes."""
        whole = [piece for piece in pieces if isinstance(piece, Predictive)]
        return Predictive(
            **vars(ItemSummary.cat(whole)),
            probabilities=torch.cat([piece.probabilities for piece in whole]),
            std=torch.cat([piece.std for piece in whole]),
        )  # fmt: skip

    def of(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the probability of one class per item: the true one."""
        check_classes(classes, self.probabilities)
        at = classes.to(self.label)[:, None]
        return self.probabilities.gather(1, at)[:, 0], self.std.gather(1, at)[:, 0]


Statistic = Callable[[ItemSummary], Tensor]

STATISTICS: dict[str, Statistic] = {
    "max_probability": lambda items: 1 - items.confidence,
    "entropy": lambda items: items.total,
    "mutual_information": lambda items: items.epistemic,
    "standard_deviation": lambda items: items.label_std,
}
"""Scores by which answers can be ranked: larger is less certain. 1 − max p̄, H[p̄], I, and the
standard deviation of p_s(label)."""

SPREAD = ("mutual_information", "standard_deviation")
"""Statistics of the spread over the samples, which one sample has not."""


def statistics_of(samples: int) -> tuple[str, ...]:
    """The statistics that tell answers of so many samples apart."""
    return tuple(name for name in STATISTICS if samples > 1 or name not in SPREAD)


def uncertainty_score(statistic: str, items: ItemSummary) -> Tensor:
    """The score of each item by the name of the statistic; one sample has no spread."""
    if statistic not in STATISTICS:
        raise LangevinError(
            f"statistic must be one of {', '.join(STATISTICS)}, got {statistic!r}"
        )
    if statistic not in statistics_of(items.samples):
        raise LangevinError(
            f"expected several samples to rank by {statistic}, got one, which has no spread; "
            f"use {' or '.join(statistics_of(1))}"
        )
    return STATISTICS[statistic](items)


def check_log_probs(log_probs: Tensor) -> Tensor:
    """Log-probabilities of [items, classes], refused when they do not sum to one (logits, NaN)."""
    if log_probs.ndim != 2 or not log_probs.numel():
        raise LangevinError(
            f"expected log-probabilities of [items, classes], got shape {list(log_probs.shape)}"
        )
    off = (log_probs.logsumexp(-1).abs() < 1e-3).logical_not()
    if off.any():
        item = int(off.nonzero()[0])
        raise LangevinError(
            f"expected log-probabilities that sum to 1 over the classes, item {item} sums to "
            f"{float(log_probs[item].exp().sum()):.4g}; pass log_softmax of the logits in float32"
        )
    return log_probs.detach()


def check_classes(classes: Tensor, probabilities: Tensor) -> None:
    """One class index per item."""
    items, number = probabilities.shape
    whole = not (classes.is_floating_point() or classes.dtype == torch.bool)
    known = items == 0 or (
        whole and len(classes) and 0 <= int(classes.min()) <= int(classes.max()) < number
    )
    if classes.shape != (items,) or not whole or not known:
        raise LangevinError(
            f"expected {items} class indices from 0 to {number - 1}, one per item, "
            f"got {classes.dtype} of shape {list(classes.shape)}"
        )
