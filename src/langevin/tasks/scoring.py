"""Samples on disk → scores of each, of the average, of every collection. Each sample is run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from ..posterior.average import LogMean
from ..posterior.scores import SampleScores, Scores
from ..store.checkpoint import load_log_probs
from ..store.samples import COLLECTIONS, Sample, choose
from ..store.validation import validation_of
from .base import Task


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


def score_samples(
    task: Task, model: nn.Module, samples: Iterable[Sample], split: str,
    on_sample: Callable[[], None] = lambda: None, *, curve: bool = False, masked: bool = False,
    rival: Sample | None = None, kept_by: Kept | None = None, see: Callable[[Tensor], None] = lambda log_probs: None,
) -> SplitScores:
    """Scores of every sample alone, of the last, and of the averaged probabilities.

    Samples of several chains are averaged with equal weights, and the average within each chain is
    given beside. With `curve`, the log-probabilities of all samples are kept and the score of the
    forward, backward and thinned collections is given for 1, 2, … samples (of each chain, as far as
    the shortest goes). `masked` leaves dropout on, with another mask for each sample. `see` is
    shown the log-probabilities of each sample. A sample whose log-probabilities `kept_by` knows is
    not run.
    """

    def said_by(sample: Sample, mask_seed: int | None = None) -> Tensor:
        known = kept_by(sample) if kept_by else None
        if known is not None:
            return known
        sample.load_into(model)
        return task.log_probs(model, split, mask_seed)

    each, within, last, beside = list[SampleScores](), dict[int, LogMean](), None, None
    kept: dict[int, list[Tensor]] = {}
    for number, sample in enumerate(samples):
        log_probs = said_by(sample, number if masked else None)
        last = scored(task, log_probs, split)
        beside = last if same(sample, rival) else beside
        each.append(SampleScores(last.scores, sample.chain, sample.step))
        within.setdefault(sample.chain, LogMean()).add(log_probs)
        see(log_probs)
        if curve:
            kept.setdefault(sample.chain, []).append(log_probs)
        on_sample()
    averaged = scored(task, LogMean.joined(within.values()).value(), split)
    assert last is not None  # an average of nothing is refused
    if rival is not None and beside is None:
        beside = scored(task, said_by(rival), split)
    chains = tuple(SampleScores(task.scores(mean.value(), split), chain, samples=mean.count)
                   for chain, mean in within.items())
    curves = collection_curves(task, list(kept.values()), split) if curve else None
    return SplitScores(last, averaged, tuple(each), chains if len(chains) > 1 else (), beside, curves)


def scored(task: Task, log_probs: Tensor, split: str) -> Scored:
    return Scored(task.scores(log_probs, split), -task.observed(log_probs, split))


def same(sample: Sample, other: Sample | None) -> bool:
    return other is not None and (sample.chain, sample.step) == (other.chain, other.step)


def collection_curves(
    task: Task, kept: list[list[Tensor]], split: str
) -> dict[str, tuple[float, ...]]:
    """Score of each collection of 1 … K samples of each chain."""

    def score(mean: LogMean) -> float:
        return task.scores(mean.value(), split).present()[task.score]

    curves: dict[str, tuple[float, ...]] = {}
    for how in COLLECTIONS:
        mean, scores = LogMean(), []
        for n in range(1, min(map(len, kept)) + 1):
            if how == "thinned":  # its members change with n
                mean = LogMean()
            for chain in kept:
                chosen = choose(chain, how, n)
                if how == "forward":  # one more at the end
                    chosen = chosen[-1:]
                elif how == "backward":  # one more before the others
                    chosen = chosen[:1]
                for log_probs in chosen:
                    mean.add(log_probs)
            scores.append(score(mean))
        curves[how] = tuple(scores)
    return curves
