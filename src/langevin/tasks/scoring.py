"""Samples on disk → scores of each, of the average, of every collection. Each sample is run
once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from ..posterior.average import LogMean
from ..posterior.scores import SampleScores, Scores
from ..store.checkpoint import load_log_probs
from ..store.samples import COLLECTIONS, Sample, choose
from ..store.validation import validation_of
from .base import Task


MANY = 64
"""Samples of a chain from which on thinned collections are summed by a product of matrices."""
Kept = Callable[[Sample], Tensor | None]
"""What a sample said of the split when it was drawn, where that was kept."""


def kept_of_validation(sample: Sample) -> Tensor | None:
    """What training kept of the validation split, beside the sample."""
    return load_log_probs(validation_of(sample.path))


@dataclass(frozen=True)
class Scored:
    """A model's scores on a split, and the nll of each item."""

    scores: Scores
    nll: Tensor


@dataclass(frozen=True)
class SplitScores:
    """What a pass of samples over a split gives."""

    last: Scored
    averaged: Scored
    each: tuple[SampleScores, ...]
    chains: tuple[SampleScores, ...]
    """The average within each chain, where there are several."""
    rival: Scored | None = None
    """Of the one sample that was named to be compared with."""
    curve: dict[str, tuple[float, ...]] | None = None


class Pass:
    """What a pass over the samples of some chains gives. Two of them join into one of the same
    size, so that memory does not grow with the chains; chains come one after the other."""

    def __init__(self, mean: LogMean, last: Tensor) -> None:
        self.mean, self.last = mean, last
        self.each, self.chains = list[SampleScores](), list[SampleScores]()
        self.rival: Tensor | None = None
        self.sums: CollectionSums | None = None

    def join(self, later: Pass) -> Pass:
        """log(e^a + e^b) of the sums, and the scores side by side."""
        self.mean = LogMean.joined([self.mean, later.mean])
        self.last = later.last
        self.each += later.each
        self.chains += later.chains
        self.rival = later.rival if self.rival is None else self.rival
        if self.sums is not None and later.sums is not None:
            self.sums.join(later.sums)
        return self


Across = Callable[[list[list[Sample]], str, Sample | None, bool], Pass]
"""Passes over chains, made elsewhere and joined: samples of each chain, split, rival, with the
curve or not."""


def score_samples(
    task: Task, model: nn.Module, samples: Iterable[Sample], split: str,
    on_sample: Callable[[], None] = lambda: None, *, curve: bool = False, masked: bool = False,
    rival: Sample | None = None, kept_by: Kept | None = None, see: Callable[[Tensor], None] = lambda log_probs: None,
    across: Across | None = None,
) -> SplitScores:
    """Scores of every sample alone, of the last, and of the averaged probabilities.

    Samples of several chains are averaged with equal weights, and the average within each chain is
    given beside. With `curve`, the score of the forward, backward and thinned collections is given
    for 1, 2, … samples (of each chain, as far as the shortest goes). `masked` leaves dropout on,
    with another mask for each sample. `see` is shown the log-probabilities of each sample. A sample
    whose log-probabilities `kept_by` knows is not run. `across` makes the passes elsewhere.
    """
    chains = [list(chain) for _, chain in groupby(samples, key=lambda sample: sample.chain)]
    if not chains:
        raise LangevinError("an average needs at least one sample, got none")
    if across is not None:
        whole = across(chains, split, rival, curve)
    else:
        whole = reduce(Pass.join, (
            score_chain(task, model, chain, split, on_sample, curve=curve, masked=masked, rival=rival,
                        kept_by=kept_by, see=see) for chain in chains))
    beside = whole.rival
    if rival is not None and beside is None:
        beside = said_by(task, model, rival, split, kept_by)
    curves = whole.sums.curves(task, split) if whole.sums else None
    return SplitScores(
        scored(task, whole.last, split), scored(task, whole.mean.value(), split), tuple(whole.each),
        tuple(whole.chains) if len(chains) > 1 else (), None if beside is None else scored(task, beside, split), curves,
    )


def score_chain(
    task: Task, model: nn.Module, samples: Sequence[Sample], split: str,
    on_sample: Callable[[], None] = lambda: None, *, curve: bool = False, masked: bool = False,
    rival: Sample | None = None, kept_by: Kept | None = None, see: Callable[[Tensor], None] = lambda log_probs: None,
) -> Pass:
    """The same of the samples of one chain, of which there is one at least."""
    mean, log_probs, each, kept, beside = LogMean(), torch.empty(0), list[SampleScores](), list[Tensor](), None
    for number, sample in enumerate(samples):
        log_probs = said_by(task, model, sample, split, kept_by, number if masked else None)
        beside = log_probs if same(sample, rival) else beside
        each.append(SampleScores(task.scores(log_probs, split), sample.chain, sample.step))
        mean.add(log_probs)
        see(log_probs)
        if curve:
            kept.append(log_probs)
        on_sample()
    found = Pass(mean, log_probs)
    found.each, found.rival = each, beside
    found.chains = [SampleScores(task.scores(mean.value(), split), samples[0].chain, samples=mean.count)]
    found.sums = CollectionSums(kept) if curve else None
    return found


def said_by(
    task: Task, model: nn.Module, sample: Sample, split: str, kept_by: Kept | None, mask_seed: int | None = None
) -> Tensor:
    """What a sample says of a split: kept, or computed now."""
    known = kept_by(sample) if kept_by else None
    if known is not None:
        return known
    sample.load_into(model)
    return task.log_probs(model, split, mask_seed)


def scored(task: Task, log_probs: Tensor, split: str) -> Scored:
    return Scored(task.scores(log_probs, split), -task.observed(log_probs, split))


def same(sample: Sample, other: Sample | None) -> bool:
    return other is not None and (sample.chain, sample.step) == (other.chain, other.step)


class CollectionSums:
    """Sums of the probabilities of the collections of 1 … K samples of a chain, which sums of other
    chains join."""

    def __init__(self, kept: list[Tensor]) -> None:
        self.means = {how: list(collection_means(kept, how)) for how in COLLECTIONS}

    def join(self, others: CollectionSums) -> None:
        """As far as the shortest chain goes."""
        for how, theirs in others.means.items():
            pairs = zip(self.means[how], theirs, strict=False)
            self.means[how] = [LogMean.joined(pair) for pair in pairs]

    def curves(self, task: Task, split: str) -> dict[str, tuple[float, ...]]:
        """The score of each."""
        return {
            how: tuple(task.scores(mean.value(), split).present()[task.score] for mean in means)
            for how, means in self.means.items()
        }


def collection_means(kept: list[Tensor], how: str) -> Iterator[LogMean]:
    """The average of each collection of 1 … K samples of one chain."""
    if how == "thinned" and len(kept) > MANY:
        yield from thinned_means(kept)
        return
    mean = LogMean()
    for n in range(1, len(kept) + 1):
        chosen = choose(kept, how, n)
        if how == "forward":  # one more at the end
            chosen = chosen[-1:]
        elif how == "backward":  # one more before the others
            chosen = chosen[:1]
        else:  # its members change with n
            mean = LogMean()
        for log_probs in chosen:
            mean.add(log_probs)
        yield LogMean(mean.log_sum, mean.count)


def thinned_means(kept: list[Tensor]) -> Iterator[LogMean]:
    """The same of the thinned collections, whose members change with n: as one product of matrices.

    K²/2 sums of logarithms, one after the other, would take longer than all else of many samples.
    """
    each = torch.stack(kept).double()
    top = each.amax(0)
    members = torch.zeros(len(kept), len(kept), dtype=each.dtype)
    for n in range(1, len(kept) + 1):
        members[n - 1, choose(list(range(len(kept))), "thinned", n)] = 1
    sums = members @ (each - top).exp_().flatten(1)
    logs = sums.clamp_min_(torch.finfo(sums.dtype).tiny).log_().view_as(each).add_(top)
    for n, log_sum in enumerate(logs, 1):
        yield LogMean(log_sum.to(kept[0].dtype), n)
