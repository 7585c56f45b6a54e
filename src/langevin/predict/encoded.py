"""Texts as a classifier reads them, and what there is to say of its classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..posterior.conformal import SetRule
from ..posterior.risk import DecisionRule
from ..posterior.uncertainty import Predictive, uncertainty_score
from .prediction_sets import name_sets
from .results import Prediction


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as they are read, and what was out of the ordinary about each."""

    texts: list[str]
    sentences: list[Tensor]
    empty: list[bool]
    """No word at all: the answer is the shares of the classes in training."""
    cut: list[bool]
    """Longer than what is read; what follows was not."""
    means: Tensor | None = None
    """The mean state of each text, where an encoder reads them."""

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> EncodedTexts:
        """Some of them."""
        return EncodedTexts(
            [self.texts[row] for row in rows], [self.sentences[row] for row in rows],
            [self.empty[row] for row in rows], [self.cut[row] for row in rows],
            None if self.means is None else self.means[list(rows)],
        )  # fmt: skip

    def with_words(self) -> EncodedTexts:
        return self.take([row for row, none in enumerate(self.empty) if not none])

    def pieces(self, rows: int) -> Iterator[EncodedTexts]:
        """So many at a time."""
        for first in range(0, len(self), rows):
            yield self.take(range(first, min(first + rows, len(self))))


def make_predictions(
    labels: Sequence[str], encoded: EncodedTexts, found: Predictive, rule: DecisionRule | None,
    sets: SetRule | None,
) -> list[Prediction]:
    """What is said about each text; empty ones are never accepted."""
    accepted: list[bool | None] = [None] * len(encoded)
    if rule is not None:
        sure = rule.decide(uncertainty_score(rule.statistic, found)).tolist()
        accepted = [yes and not none for yes, none in zip(sure, encoded.empty, strict=True)]
    named: Sequence[tuple[str, ...] | None] = [None] * len(encoded)
    if sets is not None:
        named = name_sets(sets.sets(found.probabilities), labels)
    columns = zip(
        found.label.tolist(), found.probabilities.tolist(), found.std.tolist(),
        found.total.tolist(), found.epistemic.tolist(), accepted, encoded.empty, encoded.cut,
        encoded.texts, named, strict=True,
    )  # fmt: skip
    return [
        Prediction(labels[at], dict(zip(labels, p, strict=True)),
                   dict(zip(labels, std, strict=True)), *rest)
        for at, p, std, *rest in columns
    ]


def imbalance(facts: Mapping[str, Any]) -> str | None:
    """How far the classes are from equal shares, in words; None where they nearly are."""
    counts, names = facts["class_counts"], facts["label_names"]
    most, least = max(counts), min(counts)
    if most <= 1.5 * least:
        return None
    often = names[counts.index(most)]
    times = f"{most / least:.1f} times" if least else "infinitely"
    return (f"unequal classes: {often!r} is {times} as frequent as {names[counts.index(least)]!r}; "
            f"always answering {often!r} would be wrong in {1 - most / sum(counts):.1%} of the "
            f"training sentences")
