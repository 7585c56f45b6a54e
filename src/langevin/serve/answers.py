"""What is answered: the records of the door, with what only the service adds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..posterior.risk import DecisionRule
from ..posterior.scores import Result
from ..predict.foreign import Surprise
from ..predict.results import Prediction, TextScore, TokenScore
from .limits import Limits


def encode(answer: Result) -> bytes:
    """As JSON."""
    return json.dumps(answer.to_dict(), allow_nan=False).encode("ascii")


@dataclass(frozen=True)
class Health(Result):
    """The samples of all models are loaded; before, nobody listens."""

    status: str
    models: int


@dataclass(frozen=True)
class AnswerCost(Result):
    """What an answer costs on this machine, measured when the model was loaded."""

    of: str
    """What was asked."""
    seconds: float
    """The median of a few."""
    bytes: int
    """Of the samples in memory."""


@dataclass(frozen=True)
class ModelAbout(Result):
    """What is known of a model."""

    name: str
    task: str
    title: str
    samples: int
    how: str
    """Which samples are averaged: a collection, or "best"."""
    why: str
    """The same in words."""
    labels: tuple[str, ...]
    """What each part of an answer is, such as "step 400"; of classifiers the classes."""
    label_names: tuple[str, ...]
    """What people read in the place of the labels."""
    members: dict[str, float]
    """Of a pool: the weights of its members."""
    network: str
    parameters: int
    sampler: str
    temperature: float | None
    """Of the posterior."""
    recipe: str
    """All settings of its training, as TOML."""
    level: str | None
    """What the tokens of a text are: byte, char or word."""
    pictures: bool
    """Whether it describes pictures that are sent, not features alone."""
    cost: AnswerCost
    limits: Limits


@dataclass(frozen=True)
class ModelList(Result):
    """All models that are served."""

    models: tuple[ModelAbout, ...]


@dataclass(frozen=True)
class ScoreAnswer(TextScore):
    """The score of a text, and how foreign it is to the model."""

    surprise: Surprise | None = None
    """None where the run keeps no held-out windows to compare with."""


@dataclass(frozen=True)
class NextAnswer(Result):
    """The likeliest continuations, the likeliest first."""

    tokens: tuple[TokenScore, ...]


@dataclass(frozen=True)
class ClassAnswer(Prediction):
    """A prediction, and behind it, if asked for, the draws and the members."""

    draws: dict[str, tuple[float, ...]] | None = None
    """The probability of each class by each draw."""
    members: dict[str, dict[str, float]] | None = None
    """The probability of each class by each member of the pool, averaged over its draws."""

    def to_dict(self) -> dict[str, Any]:
        told = super().to_dict()
        return {key: value for key, value in told.items()
                if value is not None or key not in ("draws", "members")}  # fmt: skip


@dataclass(frozen=True)
class SetPromise(Result):
    """What the sets of classes in `labels` promise."""

    alpha: float
    """The true class is missing from at most this share of the sets of new texts."""
    items: int
    """Labelled texts of validation that this was learnt from."""
    caution: str | None
    """Why the promise is not exact."""


@dataclass(frozen=True)
class ClassifyAnswer(Result):
    """The answers, in the order of the texts."""

    answers: tuple[ClassAnswer, ...]
    sets: SetPromise | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"answers": [answer.to_dict() for answer in self.answers],
                "sets": self.sets and self.sets.to_dict()}  # fmt: skip


@dataclass(frozen=True)
class CoveragePoint(Result):
    """What comes of accepting the answers whose statistic is below a threshold."""

    coverage: float
    """Share of the labelled texts that are accepted."""
    threshold: float | None
    """None accepts all."""
    accepted: int
    errors: int
    risk: float
    """Share of errors among the accepted."""
    risk_bound: float
    """New texts: the share of errors among the accepted is at most this. All bounds of a model
    hold together, with `confidence`."""


@dataclass(frozen=True)
class Decisions(Result):
    """Which answers may be accepted, by labelled texts of validation."""

    statistic: str
    """Of an answer; larger is less certain."""
    items: int
    confidence: float
    caution: str | None
    """Why the bounds are not exact; or, without points, why there are none."""
    points: tuple[CoveragePoint, ...]
    rule: DecisionRule | None
    """What `langevin decide` learnt last: `accepted` of an answer goes by it."""

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"rule": self.rule and self.rule.to_dict()}
