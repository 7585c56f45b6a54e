"""Uncertainty over many items and many classes in bounded memory: logits come piece by piece, sample after sample.

H[p̄] is no sum over samples, so p̄ of all classes is kept until the last sample has come; what remains of an item then
is a few numbers. Let all samples predict one block of items, take the result, go on with the next block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import LangevinError
from .calibration import Reliability, accuracy, reliability
from .uncertainty import TokenSummary, check_classes

ENTRIES = 1 << 20
"""Logits that are worked on at once: 4 MB, which stay in the cache between the passes."""


@dataclass(frozen=True)
class Scored:
    """How one predictor did on each item; every tensor is [items]."""

    log_probability: Tensor
    """Of what was observed."""
    squares: Tensor
    """Σ_c p(c)²."""
    confidence: Tensor
    """max p."""
    correct: Tensor
    """Whether the largest probability was given to what was observed."""

    def metrics(self) -> dict[str, float]:
        """NLL in nats per item, Brier score Σ_c (p(c) − [c = y])² = Σ_c p(c)² − 2p(y) + 1, error in percent, ECE."""
        log_p = self.log_probability.double()
        brier = self.squares.double() - 2 * log_p.exp() + 1
        return {
            "nll": -log_p.mean().item(), "brier": brier.mean().item(), "error": 100 * (1 - accuracy(self.correct)),
            "ece": self.reliability().ece,
        }

    def reliability(self) -> Reliability:
        return reliability(self.confidence, self.correct)

    @staticmethod
    def cat(pieces: Iterable[Scored]) -> Scored:
        pieces = list(pieces)
        return Scored(**{name: torch.cat([getattr(piece, name) for piece in pieces]) for name in FIELDS})


FIELDS = tuple(Scored.__dataclass_fields__)


@dataclass(frozen=True)
class Predictions:
    """All that is kept of the predictions of some items."""

    summary: TokenSummary
    last: Scored
    """The last sample alone."""
    averaged: Scored
    each: Tensor
    """log p_s of what was observed, [samples, items]."""
    observed: Tensor

    @staticmethod
    def cat(blocks: Iterable[Predictions]) -> Predictions:
        """Blocks of items one after another as one."""
        blocks = list(blocks)
        return Predictions(
            summary=TokenSummary.cat(block.summary for block in blocks), last=Scored.cat(b.last for b in blocks),
            averaged=Scored.cat(b.averaged for b in blocks), each=torch.cat([b.each for b in blocks], 1),
            observed=torch.cat([b.observed for b in blocks]),
        )


class StreamedMoments:
    """Mean and spread of p_s over the samples for one block of items: two tensors of [items, classes].

    In float32 the mutual information is exact to about 10⁻⁶, the difference of two rounded entropies.
    """

    def __init__(self, items: int, classes: int, samples: int, dtype: torch.dtype = torch.float32) -> None:
        self.samples, self.dtype = samples, dtype
        self.mean, self.spread = (torch.zeros(items, classes, dtype=dtype) for _ in range(2))
        self.entropy, self.squares, self.confidence = (torch.zeros(items, dtype=dtype) for _ in range(3))
        self.each = torch.full((samples, items), math.nan)
        self.votes = torch.zeros(samples, items, dtype=torch.int32)
        self.observed = torch.zeros(items, dtype=torch.long)

    def add(self, sample: int, start: int, logits: Tensor, observed: Tensor) -> None:
        """What a sample says of the items from `start` on. Samples come in order: 0, 1, …, for every item."""
        check_classes(observed, logits)
        self.observed[start : start + len(observed)] = observed
        rows = max(1, ENTRIES // logits.shape[1])
        for some, seen in zip(torch.split(logits, rows), torch.split(observed, rows), strict=True):
            self._add(sample, slice(start, start + len(some)), some.detach().cpu().to(self.dtype), seen)
            start += len(some)

    def _add(self, sample: int, at: slice, logits: Tensor, observed: Tensor) -> None:
        """d = p − p̄;  p̄ ← p̄ + d/n;  M ← M + (1 − 1/n)·d²  (Welford);  H = log Z − Σ_c p(c)·logit(c)."""
        p = torch.softmax(logits, -1)
        largest, vote = p.max(-1)
        log_z = logits.gather(1, vote[:, None])[:, 0] - largest.log()
        entropy = log_z - torch.einsum("ic,ic->i", p, logits)
        if not entropy.isfinite().all():
            raise LangevinError("expected finite logits, got NaN or infinite ones; look at the weights of the samples")
        self.entropy[at] += entropy.clamp_min(0.0)
        self.each[sample, at] = (logits.gather(1, observed[:, None])[:, 0] - log_z).float()
        self.votes[sample, at] = vote.int()
        self.squares[at], self.confidence[at] = torch.einsum("ic,ic->i", p, p), largest
        count = sample + 1
        step = p.sub_(self.mean[at])
        self.mean[at].add_(step, alpha=1 / count)
        self.spread[at].addcmul_(step, step, value=1 - 1 / count)

    def result(self) -> Predictions:
        """Once all samples were added for all items."""
        if self.each.isnan().any():
            raise LangevinError(f"expected predictions of all {self.samples} samples for every item, some are missing")
        rows = max(1, ENTRIES // self.mean.shape[1])
        total = torch.cat([torch.special.entr(some).sum(-1) for some in torch.split(self.mean, rows)])
        confidence, label = self.mean.max(-1)
        log_mean = self.each.double().logsumexp(0) - math.log(self.samples)
        right = label == self.observed
        aleatoric = self.entropy / self.samples
        summary = TokenSummary(
            probability=log_mean.exp(), label=label, confidence=confidence, total=total, aleatoric=aleatoric,
            std=self.each.double().exp().std(0, correction=1 if self.samples > 1 else 0),
            label_std=(self.spread.gather(1, label[:, None])[:, 0] / max(self.samples - 1, 1)).sqrt(),
            epistemic=(total - aleatoric).clamp_min(0.0) if self.samples > 1 else torch.zeros_like(total),
            disagreement=(self.votes != label).double().mean(0), correct=right, samples=self.samples,
        )
        last = Scored(self.each[-1], self.squares, self.confidence, self.votes[-1] == self.observed)
        averaged = Scored(log_mean, torch.einsum("ic,ic->i", self.mean, self.mean), confidence, right)
        return Predictions(summary, last, averaged, self.each, self.observed)
