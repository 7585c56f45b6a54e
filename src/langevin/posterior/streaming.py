"""Averages over samples in bounded memory: predictions come piece by piece, sample after sample.

H[p̄] is no sum over samples, so p̄ of all classes is kept until the last sample has come. Where the
classes are many, let all samples predict one block of items, take what remains of it, a few numbers
per item, and go on with the next block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ..errors import LangevinError
from .calibration import Reliability, accuracy, reliability
from .scores import Scores
from .uncertainty import ItemSummary, Predictive, check_classes, check_log_probs

ENTRIES = 1 << 20
"""Logits that are worked on at once: 4 MB, which stay in the cache between the passes."""


@dataclass(frozen=True)
class ItemScores:
    """How one predictor did on each item; every tensor is [items]."""

    log_probability: Tensor
    """Of what was observed."""
    squares: Tensor
    """Σ_c p(c)²."""
    confidence: Tensor
    """max p."""
    correct: Tensor
    """Whether the largest probability was given to what was observed."""

    def scores(self) -> Scores:
        """Σ_c (p(c) − [c = y])² = Σ_c p(c)² − 2p(y) + 1 is the Brier score."""
        log_p = self.log_probability.double()
        brier = self.squares.double() - 2 * log_p.exp() + 1
        return Scores(
            nll=-log_p.mean().item(), items=len(log_p), brier=brier.mean().item(),
            error=1 - accuracy(self.correct), ece=self.reliability().ece,
        )  # fmt: skip

    def reliability(self) -> Reliability:
        return reliability(self.confidence, self.correct)

    @staticmethod
    def cat(pieces: Iterable[ItemScores]) -> ItemScores:
        pieces = list(pieces)
        names = [field.name for field in fields(ItemScores)]
        return ItemScores(
            **{name: torch.cat([getattr(piece, name) for piece in pieces]) for name in names}
        )


@dataclass(frozen=True)
class Predictions:
    """All that is kept of the predictions of some items that were observed."""

    summary: ItemSummary
    last: ItemScores
    """The last sample alone."""
    averaged: ItemScores
    each: Tensor
    """log p_s of what was observed, [samples, items]."""
    observed: Tensor

    @property
    def probability(self) -> Tensor:
        """p̄ of what was observed."""
        return self.averaged.log_probability.exp()

    @property
    def std(self) -> Tensor:
        """Standard deviation of the probability of what was observed, over the samples."""
        several = len(self.each) > 1
        return self.each.double().exp().std(0, correction=1 if several else 0)

    @staticmethod
    def cat(blocks: Iterable[Predictions]) -> Predictions:
        """Blocks of items one after another as one."""
        blocks = list(blocks)
        return Predictions(
            summary=ItemSummary.cat(block.summary for block in blocks),
            last=ItemScores.cat(block.last for block in blocks),
            averaged=ItemScores.cat(block.averaged for block in blocks),
            each=torch.cat([block.each for block in blocks], 1),
            observed=torch.cat([block.observed for block in blocks]),
        )


def welford_(mean: Tensor, spread: Tensor, values: Tensor, count: int) -> None:
    """d = x − μ;   μ ← μ + d/n;   M ← M + (1 − 1/n)·d²   (Welford); the `values` x are used up."""
    step = values.sub_(mean)
    mean.add_(step, alpha=1 / count)
    spread.addcmul_(step, step, value=1 - 1 / count)


class Moments:
    """Mean and spread of p_s over the samples: two tensors of [items, classes].

    Mutual information is a small difference of entropies: summed in float64, the default, it is
    exact as far as the logits are, in float32 to about 10⁻⁶.
    """

    def __init__(
        self, observed: Tensor | None = None, dtype: torch.dtype = torch.float64
    ) -> None:
        self.observed, self.dtype = observed, dtype
        self.samples, self.place = 0, 0  # whole ones; items that the one at hand has predicted
        self.votes, self.each = list[Tensor](), list[Tensor]()
        self.mean = self.spread = self.entropy = self.squares = self.confidence = torch.empty(0)

    def add(self, logits: Tensor) -> None:
        """What a sample says of all items, [items, classes].

        Where `observed` tells how many there are, they may come in pieces, in order; after the last
        item begins the next sample. Log-probabilities are logits.
        """
        whole = len(logits) if self.observed is None else len(self.observed)
        if not self.votes:
            self._begin(whole, logits.shape[1])
        shape, end = self.mean.shape, self.place + len(logits)
        cut_short = self.observed is None and end < len(self.mean)
        if logits.shape[1:] != shape[1:] or end > len(self.mean) or cut_short:
            raise LangevinError(
                f"expected predictions of {list(shape)} as from the samples before, got "
                f"{list(logits.shape)}; let every sample predict the same items"
            )
        if self.observed is not None:
            check_classes(self.observed[self.place : end], logits)
        if self.place == 0:
            self.votes.append(torch.zeros(whole, dtype=torch.int32))
            self.each += [torch.zeros(whole)] if self.observed is not None else []
        for piece in torch.split(logits.detach(), max(1, ENTRIES // logits.shape[1])):
            at = slice(self.place, self.place + len(piece))
            self._add(at, piece.to("cpu", self.dtype))
            self.place = at.stop
        if self.place == len(self.mean):
            self.samples, self.place = self.samples + 1, 0

    def _begin(self, items: int, classes: int) -> None:
        self.mean, self.spread = torch.zeros(2, items, classes, dtype=self.dtype)
        self.entropy, self.squares, self.confidence = torch.zeros(3, items, dtype=self.dtype)

    def _add(self, at: slice, logits: Tensor) -> None:
        """H = log Z − Σ_c p(c)·logit(c), and Welford's step."""
        p = torch.softmax(logits, -1)
        largest, vote = p.max(-1)
        log_z = logits.gather(1, vote[:, None])[:, 0] - largest.log()
        entropy = log_z - torch.einsum("ic,ic->i", p, logits)
        if not entropy.isfinite().all():  # 0·(−∞) = 0, where a class is ruled out
            possible = logits.clamp_min(torch.finfo(self.dtype).min)
            entropy = log_z - torch.einsum("ic,ic->i", p, possible)
        if not entropy.isfinite().all():
            raise LangevinError(
                "expected finite logits, got NaN or infinite ones; look at the weights of the "
                "samples"
            )
        self.entropy[at] += entropy.clamp_min(0.0)
        self.votes[-1][at] = vote.int()
        if self.observed is not None:
            true = self.observed[at].to(vote)[:, None]
            self.each[-1][at] = (logits.gather(1, true)[:, 0] - log_z).float()
            self.squares[at], self.confidence[at] = torch.einsum("ic,ic->i", p, p), largest
        welford_(self.mean[at], self.spread[at], p, self.samples + 1)

    def result(self) -> Predictive:
        """Mean, spread and the parts of the uncertainty, over the samples so far."""
        return Predictive(
            **vars(self._summary()), probabilities=self.mean.clone(),
            std=(self.spread / max(self.samples - 1, 1)).sqrt(),
        )  # fmt: skip

    def predictions(self) -> Predictions:
        """What remains of items that were observed; the classes are forgotten."""
        if self.observed is None:
            raise LangevinError("expected what was observed of the items, got None")
        summary, each = self._summary(), torch.stack(self.each)
        log_mean = each.double().logsumexp(0) - math.log(self.samples)
        squares = torch.einsum("ic,ic->i", self.mean, self.mean)
        right = summary.label == self.observed
        last_right = self.votes[-1] == self.observed
        return Predictions(
            summary, ItemScores(each[-1], self.squares.clone(), self.confidence.clone(), last_right),
            ItemScores(log_mean, squares, summary.confidence, right), each, self.observed,
        )  # fmt: skip

    def _summary(self) -> ItemSummary:
        if not self.votes:
            raise LangevinError("a prediction needs at least one sample, got none")
        if self.place:
            raise LangevinError(
                f"expected predictions of all {len(self.mean)} items by every sample, got "
                f"{self.place} by sample {self.samples}, the last one"
            )
        several = self.samples > 1
        rows = max(1, ENTRIES // self.mean.shape[1])
        pieces = torch.split(self.mean, rows)
        total = torch.cat([torch.special.entr(piece).sum(-1) for piece in pieces])
        confidence, label = self.mean.max(-1)
        spread = self.spread.gather(1, label[:, None])[:, 0]
        aleatoric = self.entropy / self.samples
        against = torch.stack([(vote != label).double() for vote in self.votes]).mean(0)
        return ItemSummary(
            label=label, confidence=confidence,
            label_std=(spread / max(self.samples - 1, 1)).sqrt(), total=total, aleatoric=aleatoric,
            epistemic=(total - aleatoric).clamp_min(0.0) if several else torch.zeros_like(total),
            disagreement=against, samples=self.samples,
        )  # fmt: skip


def predictive(log_probs: Tensor | Iterable[Tensor]) -> Predictive:
    """All samples at once: [samples, items, classes], or an iterable of [items, classes]."""
    moments = Moments()
    for sample in log_probs:
        moments.add(check_log_probs(sample))
    return moments.result()
