"""Which samples of a run are averaged: the one place that decides.

Nobody else does: commands, the report, the estimator, export and the door ask `resolve`. Where
validation chose when training ended, its choice is the default; reading evaluates nothing unasked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from ..errors import LangevinError
from ..store.folder import COLLECTION, RunFolder
from ..store.manifest import Choice
from ..store.samples import COLLECTIONS, Sample
from .average import LogMean

BEST, ALL = "best", "thinned"
"""What validation chose; and the collection that, with no number, is all samples."""
log = logging.getLogger("langevin")


@dataclass(frozen=True)
class Selection:
    """What was asked for: one of the three collections, or "best"; None where nobody said."""

    how: str | None = None
    samples: int | None = None
    discard: int = 0
    skip_damaged: bool = False

    @property
    def says_which(self) -> bool:
        """Whether some samples were named, to which no choice among all of them applies."""
        return self.samples is not None or self.discard > 0 or self.skip_damaged


EVERYTHING = Selection(ALL)


@dataclass(frozen=True)
class Chosen:
    """The samples that are averaged, and how they were found."""

    samples: list[Sample]
    how: str
    """A collection, or "best"."""
    skipped: list[str]
    """Damaged ones that were left out, in words."""
    choice: Choice | None = None
    """The collection behind "best"."""

    @property
    def why(self) -> str:
        """In words."""
        if self.choice is None:
            return f"{self.how} collection, {len(self.samples)} samples"
        return f"chosen by validation: {self.choice.how}, {len(self.samples)} samples"


Choose = Callable[[RunFolder, list[Sample], bool], Choice]
"""Finds the best collection of these samples; the flag says whether to remember it."""


def resolve(folder: RunFolder, request: Selection = Selection(), choose: Choose | None = None) -> Chosen:  # noqa: B008  # frozen
    """The samples of a run that were asked for, or else its default.

    The default is what validation chose when training ended, as long as the samples are the same,
    or else all. Of classifiers it is all: their validation sentences decide which answers to
    accept, and should choose nothing else. Where "best" is asked for and nothing is remembered,
    `choose` evaluates.
    """
    store = folder.store(skip_damaged=request.skip_damaged)
    if not store.samples:
        refuse_unsampled(folder)
    known = folder.choice()
    if known is not None and known.of != names_of(store.samples):
        if request == Selection() and folder.recipe.task != "classify":
            log.warning("%s was chosen among other samples, so that all are averaged; 'langevin "
                        "evaluate %s --select best' chooses anew",
                        folder.path / COLLECTION, folder.path)
        known = None
    usual = BEST if known and folder.recipe.task != "classify" and not request.says_which else ALL
    how = request.how or usual
    if how != BEST:
        samples = store.select(how, request.samples, discard=request.discard)
        return Chosen(samples, how, store.skipped)
    if request.samples is not None:
        raise LangevinError(f"{BEST} chooses how many samples by itself, got {request.samples}; leave "
                            f"--samples out, or name a collection: {', '.join(COLLECTIONS)}")
    partial = request.discard > 0 or request.skip_damaged
    if known is None or partial:
        if choose is None:
            raise LangevinError(f"expected a choice that validation made in {folder.path}, found "
                                f"none; name a collection: {', '.join(COLLECTIONS)}")
        known = choose(folder, store.read(discard=request.discard), not partial)
    samples = store.select(known.how, known.samples, discard=request.discard)
    return Chosen(samples, BEST, store.skipped, known)


def refuse_unsampled(folder: RunFolder) -> None:
    """A run that is still before its first sample."""
    progress = folder.progress()
    if progress is None or not progress.finished:
        at = f"step {progress.step} of {progress.total}" if progress else "its beginning"
        raise LangevinError(f"expected samples in {folder.path}, it has none yet: it stands at "
                            f"{at}; go on with 'langevin resume {folder.path}'")


def names_of(samples: list[Sample]) -> tuple[str, ...]:
    """By which a choice among samples is told from one among others."""
    return tuple(f"{sample.chain}:{sample.sha256}" for sample in samples)


def best_of(curves: Mapping[str, Sequence[float]], fewest: int = 1) -> tuple[str, int]:
    """Where the least score of all collections is, and with how many samples.

    At least `fewest` of them, as far as there are so many.
    """
    scores = {(how, n): score for how, curve in curves.items() for n, score in enumerate(curve, 1)
              if n >= min(fewest, len(curve))}  # fmt: skip
    return min(scores, key=lambda at: scores[at])


def choose_last(
    log_probs: Sequence[Tensor], score: Callable[[Tensor], float]
) -> tuple[int, float]:
    """j and the score of the average of the last j samples, where that is least.

    `log_probs` are those of the samples on validation, in their order; `score` is of an average of
    them, lower is better. Of equals the most samples.
    """
    if not log_probs:
        raise LangevinError("expected the log-probabilities of at least one sample, got none")
    mean, scores = LogMean(), list[float]()
    for sample in reversed(log_probs):
        mean.add(sample)
        scores.append(score(mean.value()))
    best = min(scores)
    last = max(j for j, found in enumerate(scores, 1) if found == best)
    return last, best
