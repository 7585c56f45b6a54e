"""What may be promised of a classifier's answers, from its validation sentences, kept in memory.

A request learns nothing anew on disk: the run folder stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ..errors import LangevinError
from ..posterior.conformal import SetRule, learn_sets
from ..posterior.risk import best_statistic, grid, risk_upper_bound
from ..posterior.uncertainty import Predictive
from ..predict.classification import ClassificationPosterior
from ..predict.decision import CONFIDENCE, LabelledPredictions, has_words, why_inexact
from ..predict.rules import kept_sets
from ..process import Progress
from .answers import CoveragePoint, Decisions

BY_ENTROPY = "entropy"
"""What ranks the answers where nothing is known of their errors."""


@dataclass(frozen=True)
class Promises:
    """Validation sentences with their predictions; without them nothing is promised."""

    posterior: ClassificationPosterior
    all: Predictive | None
    targets: Tensor | None
    worded: LabelledPredictions | None
    """Those with words: empty ones are never accepted."""
    missing: str | None = None
    """Why there are none."""

    @classmethod
    def of(cls, posterior: ClassificationPosterior, progress: Progress) -> Promises:
        """Predict the validation sentences, where they are still there."""
        try:
            there = has_words(posterior.task, "valid")
            found = posterior.predictive(posterior.split("valid"), progress)
            worded = posterior.predict_splits(("valid",)) if not bool(there.all()) else None
        except LangevinError:
            return cls(posterior, None, None, None, "the labelled sentences of its training are "
                       "not here, so nothing is known of its errors")  # fmt: skip
        targets = posterior.task.targets["valid"]
        own = worded["valid"] if worded else LabelledPredictions(found, targets, 0)
        return cls(posterior, found, targets, own)

    def sets(self, alpha: float) -> SetRule:
        """As the run folder keeps it, or learnt now."""
        folder = self.posterior.opened.folder
        kept = kept_sets(folder.path, self.posterior.fingerprint, alpha) if folder else None
        if kept is not None:
            return kept
        if self.all is None or self.targets is None:
            raise LangevinError(f"expected labelled sentences to learn sets from, got none: "
                                f"{self.missing}; leave alpha out")
        return learn_sets(self.all.probabilities, self.targets, alpha=alpha)

    @property
    def caution(self) -> str | None:
        return why_inexact(self.posterior.opened)

    def decisions(self) -> Decisions:
        """The bounds of a fixed grid of coverages hold together, whichever is taken later."""
        rule = self.posterior.rule
        if self.worded is None:
            return Decisions(BY_ENTROPY, 0, CONFIDENCE, self.missing, (), rule)
        valid = self.worded
        statistic, areas = best_statistic(valid.predictive, valid.labels)
        found = grid(valid.scores(statistic).double(), valid.correct.long())
        delta, items = (1 - CONFIDENCE) / (len(found) * len(areas)), len(valid.labels)
        points = tuple(
            CoveragePoint(accepted / items, threshold if math.isfinite(threshold) else None,
                          accepted, errors, errors / accepted,
                          risk_upper_bound(errors, accepted, delta))
            for threshold, accepted, errors in found if accepted
        )  # fmt: skip
        return Decisions(statistic, items, CONFIDENCE, self.caution, points, rule)
