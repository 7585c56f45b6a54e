"""How well predictions met what was observed, as records: one name and one unit for each number."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

LARGE = 1e300
"""Stands for ∞ in JSON."""


@dataclass(frozen=True)
class Result:
    """What is answered: a frozen record. Fields that say nothing here are None."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, under the names of the fields."""
        plain: dict[str, Any] = in_json(asdict(self))
        return plain


def in_json(value: Any) -> Any:
    """Tuples are lists; NaN and ∞, which JSON has not, are None and a large number."""
    if isinstance(value, dict):
        return {key: in_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(LARGE, value)
    return value


@dataclass(frozen=True)
class Scores(Result):
    """Of some predictions over `items`: tokens, words or sentences."""

    nll: float
    """Mean −log of the probability of what was observed, in nats per item."""
    items: int
    perplexity: float | None = None
    """exp(nll), of words or characters."""
    bits_per_byte: float | None = None
    """Comparable between levels, where tokens can be turned back into bytes."""
    error: float | None = None
    """Share of wrong answers, 0 to 1."""
    brier: float | None = None
    """Summed over classes, 0 to 2."""
    ece: float | None = None
    """Expected calibration error, 0 to 1."""
    unknown_share: float | None = None
    """Share of the words or characters that are <unk>, 0 to 1."""

    def present(self) -> dict[str, float]:
        """The numbers that there are, by their names."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class SampleScores(Result):
    """One stored sample, or the average of one chain."""

    scores: Scores
    chain: int
    step: int | None = None
    """Of one sample."""
    samples: int = 1


@dataclass(frozen=True)
class ComparedScores(Result):
    """A line of a table: one network, a member of a pool, the pool."""

    name: str
    scores: Scores
    gain: float | None = None
    """Nats per item by which it is ahead of the first line; above 0 it is better."""
    gain_error: float | None = None
    """Standard error of that, paired over items; of a text over blocks of it."""
