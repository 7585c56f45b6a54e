"""Accept an answer or send it to a person: rules learnt on validation sentences, and their test.

Empty texts are left out of learning and of every report here and always go to a person: each sample
gives them the same answer, so that no spread could tell how little is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import LangevinError
from ..posterior.calibration import auroc
from ..posterior.risk import (
    DecisionRule,
    RiskCoverage,
    best_statistic,
    binomial_cdf,
    learn_threshold,
    risk_coverage,
    threshold_at_cost,
    threshold_at_coverage,
)
from ..posterior.scores import Result
from ..posterior.selection import BEST
from ..posterior.uncertainty import STATISTICS, Predictive, statistics_of, uncertainty_score
from ..recipe.base import nearest
from ..store.folder import RECIPE, RunFolder
from ..store.linear_members import has_linear_members
from ..tasks.classification import ClassifyTask
from .opened import Opened

AUTO = "auto"
"""The statistic with the least area under the risk-coverage curve of the validation sentences."""
CONFIDENCE = 0.95
"""Of a promised risk, unless another is asked for."""
RISK_AT = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
CURVE_POINTS = 200
"""Of a risk-coverage curve in a report; a figure has them all."""


@dataclass(frozen=True)
class RiskTarget(Result):
    """What the user asked for: at most so much risk with this confidence, or so much coverage."""

    kind: str
    value: float
    confidence: float | None = None
    statistic: str = AUTO

    @classmethod
    def parse(
        cls, risk: float | None, coverage: float | None, confidence: float | None, statistic: str,
        cost: float | None = None,
    ) -> RiskTarget | None:
        """From options; None where neither was given. What would have no effect is refused."""
        if statistic not in (AUTO, *STATISTICS):
            hint = nearest(statistic, STATISTICS)
            raise LangevinError(f"statistic must be auto or one of {', '.join(STATISTICS)}, got "
                                f"{statistic!r}{hint}")
        if risk is not None and coverage is not None:
            raise LangevinError("expected either a risk or a coverage, got both; leave one out")
        if cost is not None:
            if (risk, coverage, confidence) != (None, None, None):
                raise LangevinError("expected a cost alone, got a risk, a coverage or a confidence "
                                    "beside it; leave them out")
            return cls("cost", cost, None, statistic)
        if risk is not None:
            return cls("risk", risk, CONFIDENCE if confidence is None else confidence, statistic)
        if confidence is not None:
            raise LangevinError(
                f"expected a risk to be promised with confidence {confidence:g}, got "
                f"{'none' if coverage is None else 'a coverage'}; add --risk or leave --confidence "
                f"out"
            )
        if coverage is None and statistic != AUTO:
            raise LangevinError(
                f"expected a risk or a coverage to learn by the statistic {statistic!r}, got "
                f"neither; add --risk or --coverage, or leave --statistic out"
            )
        return None if coverage is None else cls("coverage", coverage, None, statistic)


BY_DEFAULT = RiskTarget("coverage", 0.9)
"""Where nobody asked for anything."""


@dataclass(frozen=True)
class LabelledPredictions:
    """Predictions of the sentences of a split that have words, with their true classes."""

    predictive: Predictive
    labels: Tensor
    empty: int
    """Sentences without words, which are left out."""

    @property
    def correct(self) -> Tensor:
        return self.predictive.label == self.labels

    def scores(self, statistic: str) -> Tensor:
        return uncertainty_score(statistic, self.predictive)

    def curves(self) -> dict[str, RiskCoverage]:
        return {name: risk_coverage(self.scores(name), self.correct)
                for name in statistics_of(self.predictive.samples)}


@dataclass(frozen=True)
class Ranking(Result):
    """How well each statistic puts the wrong answers last."""

    items: int
    empty: int
    error: float
    aurc: dict[str, float]
    """Area under the risk-coverage curve: the mean risk of the surest 1, 2, … answers."""
    best: str
    oracle: float
    """The area of a perfect ranking."""
    error_auroc: dict[str, float] | None
    """P(a wrong answer is less certain than a right one); None where all are of one kind."""
    risk_at: dict[str, dict[str, float]]
    curves: dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Promise(Result):
    """What became of a rule on sentences that it was not learnt on."""

    accepted: int
    errors: int
    coverage: float
    risk: float
    held: bool | None
    """The risk is at most what was asked; None where nothing was accepted or promised."""
    chance: float | None
    """Of at least so many errors where the true risk is just the target. Small: the promise was
    broken, luck was not bad."""


@dataclass(frozen=True)
class Decision(Result):
    """A rule, how it was learnt on validation, and how it did on the test split."""

    run: str
    samples: int
    asked: RiskTarget
    rule: DecisionRule
    caution: str | None
    """Why the promise is not exact."""
    valid: Ranking
    test: Ranking | None = None
    promise: Promise | None = None
    """On the test split."""
    skipped: tuple[str, ...] = ()
    splits: tuple[LabelledPredictions, ...] = ()
    """The predictions behind it, of validation and test; not told by `to_dict`."""

    def to_dict(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "splits"}
        return {name: value.to_dict() if isinstance(value, Result) else value
                for name, value in told.items()}


def has_words(task: ClassifyTask, split: str) -> Tensor:
    """Which sentences of a split have words."""
    return torch.tensor([len(sentence) > 0 for sentence in task.sentences[split]])


def label_split(task: ClassifyTask, split: str, predictive: Predictive) -> LabelledPredictions:
    """Predictions of those sentences of a split that have words, with their true classes."""
    there = has_words(task, split)
    return LabelledPredictions(predictive, task.targets[split][there], int((~there).sum()))


def learn(target: RiskTarget, valid: LabelledPredictions) -> DecisionRule:
    """The threshold for a target; a risk out of reach is refused with the least within it."""
    statistic, comparisons = target.statistic, 1
    if statistic == AUTO:
        statistic, areas = best_statistic(valid.predictive, valid.labels)
        comparisons = len(areas)
    scores, correct = valid.scores(statistic), valid.correct
    if target.kind == "cost":
        return threshold_at_cost(scores, correct, cost=target.value, statistic=statistic)
    if target.kind == "coverage":
        return threshold_at_coverage(scores, correct, coverage=target.value, statistic=statistic)
    confidence = CONFIDENCE if target.confidence is None else target.confidence
    return learn_threshold(
        scores, correct, risk=target.value, confidence=confidence, statistic=statistic,
        comparisons=comparisons,
    )  # fmt: skip


def rank(part: LabelledPredictions) -> Ranking:
    """How well each statistic ranks the answers of a split."""
    correct, curves = part.correct, part.curves()
    areas = {name: curve.aurc for name, curve in curves.items()}
    both = bool(correct.any()) and not bool(correct.all())
    return Ranking(
        items=len(correct), empty=part.empty, error=1 - correct.double().mean().item(), aurc=areas,
        best=min(areas, key=lambda name: areas[name]),
        oracle=risk_coverage((~correct).double(), correct).aurc,
        error_auroc={name: auroc(part.scores(name)[~correct], part.scores(name)[correct])
                     for name in curves} if both else None,
        risk_at={name: {f"{c:g}": risk_at(curve, c) for c in RISK_AT}
                 for name, curve in curves.items()},
        curves={name: thinned(curve) for name, curve in curves.items()},
    )  # fmt: skip


def risk_at(curve: RiskCoverage, coverage: float) -> float:
    """Risk at the smallest coverage of the curve that is at least this one."""
    return float(curve.risk[int((curve.coverage < coverage - 1e-9).sum())])


def thinned(curve: RiskCoverage) -> dict[str, list[float]]:
    points = min(len(curve.risk), CURVE_POINTS)
    at = torch.linspace(0, len(curve.risk) - 1, points).round().long()
    return {"coverage": curve.coverage[at].tolist(), "risk": curve.risk[at].tolist()}


def score_promise(rule: DecisionRule, test: LabelledPredictions) -> Promise:
    """The rule on sentences that it was not learnt on. Coverage promises nothing."""
    accepted = rule.decide(test.scores(rule.statistic))
    number, errors = int(accepted.sum()), int((~test.correct & accepted).sum())
    coverage, risk = number / len(accepted), errors / number if number else 0.0
    if rule.target != "risk":
        return Promise(number, errors, coverage, risk, held=None, chance=None)
    chance = 1.0 if errors == 0 else 1 - binomial_cdf(errors - 1, number, rule.value)
    held = risk <= rule.value if number else None
    return Promise(number, errors, coverage, risk, held, chance)


def decide_splits(
    target: RiskTarget, rule: DecisionRule, splits: dict[str, LabelledPredictions], **about: Any
) -> Decision:
    """What is told of a rule that was learnt on the first of these splits."""
    test = splits.get("test")
    return Decision(
        asked=target, rule=rule, valid=rank(splits["valid"]), test=rank(test) if test else None,
        promise=score_promise(rule, test) if test else None, splits=tuple(splits.values()), **about,
    )  # fmt: skip


def why_inexact(opened: Opened) -> str | None:
    """Why a promise is not exact: its validation sentences also chose the model."""
    if opened.folder is None:
        return None
    chosen = chosen_on_validation(opened.folder)
    if has_linear_members(opened.folder.path):
        chosen["the weights of the members"] = "train with pool=none"
    if opened.chosen.how == BEST:
        chosen["which samples to average"] = f"leave --select {BEST} out"
    if not chosen:
        return None
    return (f"the validation sentences also chose {' and '.join(chosen)}, so the promise is a "
            f"little optimistic; {' and '.join(chosen.values())} for an exact one")


def chosen_on_validation(folder: RunFolder) -> dict[str, str]:
    """What the validation sentences chose of a run (or of its teacher), and how to undo it."""
    chosen = dict[str, str]()
    if folder.recipe.run.patience is not None:
        chosen["when to stop"] = "train with patience=none"
    if "temperature_choice" in folder.facts:  # of runs made when validation could choose it
        chosen["the temperature"] = "name a temperature"
    teacher = Path(folder.origin.teacher.run) if folder.origin.teacher else None
    if teacher is not None and (teacher / RECIPE).is_file():
        chosen |= chosen_on_validation(RunFolder(teacher))
    return chosen
