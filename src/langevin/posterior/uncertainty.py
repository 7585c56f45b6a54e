"""What the samples agree on and what they do not: mean, spread, entropy, mutual information of class predictions.

With S samples, p_s(c) the probability that sample s gives to class c, and p̄ = 1/S Σ_s p_s:

    total      H[p̄]             = −Σ_c p̄(c) log p̄(c)          all that is uncertain about the answer, in nats
    aleatoric  1/S Σ_s H[p_s]                                   what would remain if the weights were known
    epistemic  I = H[p̄] − 1/S Σ_s H[p_s] = 1/S Σ_s KL(p_s ‖ p̄) ≥ 0    mutual information of answer and weights
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..errors import LangevinError


class Uncertain(Protocol):
    """What the statistics read, one number per item: of whole predictions or of their summary."""

    @property
    def label(self) -> Tensor: ...
    @property
    def confidence(self) -> Tensor: ...
    @property
    def label_std(self) -> Tensor: ...
    @property
    def total(self) -> Tensor: ...
    @property
    def epistemic(self) -> Tensor: ...
    @property
    def samples(self) -> int: ...


@dataclass(frozen=True)
class Predictive:
    """Averaged class predictions of some items with their uncertainty; all but the first two are [items]."""

    probabilities: Tensor
    """p̄, [items, classes]."""
    std: Tensor
    """Standard deviation of p_s(c) over the samples (n−1; zero for one sample), [items, classes]."""
    label: Tensor
    """argmax of p̄."""
    total: Tensor
    aleatoric: Tensor
    epistemic: Tensor
    """Total less aleatoric; rounding below zero is cut off, and one sample has none."""
    disagreement: Tensor
    """Share of the samples whose own argmax is another label."""
    samples: int

    @property
    def confidence(self) -> Tensor:
        """The averaged probability of the label: max p̄."""
        return self.of(self.label)[0]

    @property
    def label_std(self) -> Tensor:
        """Standard deviation of the label's probability over the samples."""
        return self.of(self.label)[1]

    def of(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the probability of one class per item, such as the true one."""
        check_classes(classes, self.probabilities)
        at = classes.to(self.label)[:, None]
        return self.probabilities.gather(1, at)[:, 0], self.std.gather(1, at)[:, 0]

    def summary(self, observed: Tensor) -> TokenSummary:
        """Numbers per item only, given what was observed: the classes can then be forgotten."""
        p, std = self.of(observed)
        return TokenSummary(
            probability=p, std=std, label=self.label, confidence=self.confidence, label_std=self.label_std,
            total=self.total, aleatoric=self.aleatoric, epistemic=self.epistemic, disagreement=self.disagreement,
            correct=self.label == observed.to(self.label), samples=self.samples,
        )


@dataclass(frozen=True)
class TokenSummary:
    """What is kept of a prediction over a large vocabulary: every tensor is [items].

    H[p̄] is no sum over samples, so p̄ of all classes is needed until the last sample has come. With 10,000 words and
    80,000 tokens that would be 6 GB: let all samples predict one batch of tokens, keep its summary, go on with the
    next batch, and join the summaries with `cat`.
    """

    probability: Tensor
    """p̄ of the observed token."""
    std: Tensor
    """Standard deviation of the observed token's probability over the samples."""
    label: Tensor
    confidence: Tensor
    label_std: Tensor
    total: Tensor
    aleatoric: Tensor
    epistemic: Tensor
    disagreement: Tensor
    correct: Tensor
    """Whether the label is the observed token."""
    samples: int

    @staticmethod
    def cat(pieces: Iterable[TokenSummary]) -> TokenSummary:
        """Batches one after another as one; all must come from the same number of samples."""
        pieces = list(pieces)
        counts = sorted({piece.samples for piece in pieces})
        if len(counts) != 1:
            raise LangevinError(f"expected summaries over the same number of samples, got {counts or 'no summaries'}; "
                                f"let every sample predict every batch")
        names = [name for name in TokenSummary.__dataclass_fields__ if name != "samples"]
        joined = {name: torch.cat([getattr(piece, name) for piece in pieces]) for name in names}
        return TokenSummary(**joined, samples=counts[0])


class PredictiveMoments:
    """Takes log p_s of [items, classes] sample after sample and keeps mean, spread, mean entropy and votes.

    Memory is two tensors of [items, classes] however many samples come. Sums are made in float64: mutual information
    is a small difference of entropies, float32 leaves it an error of about 10⁻⁶.
    """

    def __init__(self) -> None:
        self.count = 0
        self.votes: list[Tensor] = []

    def add(self, log_probs: Tensor) -> None:
        """One more sample's log-probabilities of the same items."""
        log_p = checked(log_probs).double()
        p = log_p.exp()
        if self.count == 0:
            self.mean, self.squares = torch.zeros_like(p), torch.zeros_like(p)
            self.entropy = torch.zeros_like(p[:, 0])
        if p.shape != self.mean.shape:
            raise LangevinError(f"expected predictions of {list(self.mean.shape)} as from the samples before, "
                                f"got {list(p.shape)}; let every sample predict the same items")
        self.count += 1
        self.entropy -= (p * log_p.clamp_min(torch.finfo(log_p.dtype).min)).sum(-1)  # 0·log 0 = 0
        step = p - self.mean
        self.mean += step / self.count
        self.squares += step * (p - self.mean)  # Welford
        self.votes.append(log_p.argmax(-1).int())

    def result(self) -> Predictive:
        """Mean, spread and the parts of the uncertainty, over the samples so far."""
        if not self.count:
            raise LangevinError("a prediction needs at least one sample, got none")
        label = self.mean.argmax(-1)
        total, aleatoric = torch.special.entr(self.mean).sum(-1), self.entropy / self.count
        against = torch.stack([(vote != label).double() for vote in self.votes]).mean(0)
        return Predictive(
            probabilities=self.mean.clone(), std=torch.sqrt(self.squares / max(self.count - 1, 1)), label=label,
            total=total, aleatoric=aleatoric, disagreement=against, samples=self.count,
            epistemic=(total - aleatoric).clamp_min(0.0) if self.count > 1 else torch.zeros_like(total),
        )


def predictive(log_probs: Tensor | Iterable[Tensor]) -> Predictive:
    """All samples at once: [samples, items, classes], or an iterable of [items, classes]."""
    moments = PredictiveMoments()
    for sample in log_probs:
        moments.add(sample)
    return moments.result()


Statistic = Callable[[Uncertain], Tensor]

STATISTICS: dict[str, Statistic] = {
    "max_probability": lambda given: 1 - given.confidence,
    "entropy": lambda given: given.total,
    "mutual_information": lambda given: given.epistemic,
    "standard_deviation": lambda given: given.label_std,
}
"""Scores by which answers can be ranked: larger is less certain. 1 − max p̄, H[p̄], I, and the std of p_s(label)."""

SPREAD = ("mutual_information", "standard_deviation")
"""Statistics of the spread over the samples, which one sample has not."""


def statistics_of(samples: int) -> tuple[str, ...]:
    """The statistics that tell answers of so many samples apart."""
    return tuple(name for name in STATISTICS if samples > 1 or name not in SPREAD)


def uncertainty_score(statistic: str, given: Uncertain) -> Tensor:
    """The score of each item by the name of the statistic; one sample has no spread to be ranked by."""
    if statistic not in STATISTICS:
        raise LangevinError(f"statistic must be one of {', '.join(STATISTICS)}, got {statistic!r}")
    if statistic not in statistics_of(given.samples):
        raise LangevinError(f"expected several samples to rank by {statistic}, got one, which has no spread; "
                            f"use {' or '.join(statistics_of(1))}")
    return STATISTICS[statistic](given)


def checked(log_probs: Tensor) -> Tensor:
    """Log-probabilities of [items, classes], refused when they do not sum to one (logits, NaN, half precision)."""
    if log_probs.ndim != 2 or not log_probs.numel():
        raise LangevinError(f"expected log-probabilities of [items, classes], got shape {list(log_probs.shape)}")
    off = (log_probs.logsumexp(-1).abs() < 1e-3).logical_not()
    if off.any():
        item = int(off.nonzero()[0])
        raise LangevinError(f"expected log-probabilities that sum to 1 over the classes, item {item} sums to "
                            f"{float(log_probs[item].exp().sum()):.4g}; pass log_softmax of the logits in float32")
    return log_probs.detach()


def check_classes(classes: Tensor, probabilities: Tensor) -> None:
    """One class index per item."""
    items, number = probabilities.shape
    whole = not (classes.is_floating_point() or classes.dtype == torch.bool)
    if classes.shape != (items,) or not whole or (items and not 0 <= int(classes.min()) <= int(classes.max()) < number):
        raise LangevinError(f"expected {items} class indices from 0 to {number - 1}, one per item, "
                            f"got {classes.dtype} of shape {list(classes.shape)}")
