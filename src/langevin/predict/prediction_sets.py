"""Sets of classes that hold the true one as often as promised: learnt, kept, tested, told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from ..posterior.conformal import SetRule, SetScores
from ..posterior.scores import Result


@dataclass(frozen=True)
class PredictionSets(Result):
    """A rule for sets, learnt on validation sentences, and how its sets did on the test split."""

    run: str
    samples: int
    rule: SetRule
    caution: str | None
    """Why the promise is not exact."""
    test: SetScores | None = None
    """None where the run has no test split."""
    skipped: tuple[str, ...] = ()


def name_sets(inside: Tensor, labels: Sequence[str]) -> list[tuple[str, ...]]:
    """The labels in each set, in their order."""
    return [tuple(label for label, there in zip(labels, row, strict=True) if there)
            for row in inside.tolist()]
