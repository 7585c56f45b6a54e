"""Accept an answer or send it to a person: rules learned on a run's validation sentences, kept in its folder.

Empty texts are left out of learning and of every report here and always go to a person: each sample gives them the same
answer, so that no spread could tell how little is known.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import LangevinError
from ..files import inside
from ..posterior.calibration import auroc
from ..posterior.risk import (
    DecisionRule,
    RiskCoverage,
    best_statistic,
    binomial_cdf,
    learn_threshold,
    risk_coverage,
    threshold_at_coverage,
)
from ..posterior.uncertainty import STATISTICS, Predictive, statistics_of, uncertainty_score
from ..recipe.base import nearest
from ..store.folder import DECISIONS, RECIPE, RunFolder
from ..store.records import read_sealed, write_sealed
from ..tasks.classification import ClassifyTask
from ..posterior.selection import BEST
from .classification import Classifier, Encoded
from ..process import Progress, SILENT

ACCEPT, PERSON = "accept", "send to a person"
CONFIDENCE = 0.95
"""Of a promised risk, unless another is asked for."""
RISK_AT = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
CURVE_POINTS = 200
"""Of a risk-coverage curve in a report; a figure has them all."""


@dataclass(frozen=True)
class Target:
    """What the user asked for: at most so much risk with this confidence, or about so much coverage."""

    kind: str
    value: float
    confidence: float | None = None
    statistic: str = "auto"
    """"auto": the one with the least area under the risk-coverage curve of the validation sentences."""

    @classmethod
    def asked(
        cls, risk: float | None, coverage: float | None, confidence: float | None, statistic: str
    ) -> Target | None:
        """From the options of a command; None where neither was given. What would have no effect is refused."""
        if statistic not in ("auto", *STATISTICS):
            hint = nearest(statistic, STATISTICS)
            raise LangevinError(f"statistic must be auto or one of {', '.join(STATISTICS)}, got {statistic!r}{hint}")
        if risk is not None and coverage is not None:
            raise LangevinError("expected either a risk or a coverage, got both; leave one out")
        if risk is not None:
            return cls("risk", risk, CONFIDENCE if confidence is None else confidence, statistic)
        if confidence is not None:
            raise LangevinError(f"expected a risk to be promised with confidence {confidence:g}, got "
                                f"{'none' if coverage is None else 'a coverage'}; add --risk or leave --confidence out")
        if coverage is None and statistic != "auto":
            raise LangevinError(f"expected a risk or a coverage to learn by the statistic {statistic!r}, got neither; "
                                f"add --risk or --coverage, or leave --statistic out")
        return None if coverage is None else cls("coverage", coverage, None, statistic)


DEFAULT = Target("coverage", 0.9)
"""Where nobody asked for anything."""


@dataclass(frozen=True)
class Judged:
    """Predictions of the sentences of a split that have words, with their true classes."""

    given: Predictive
    labels: Tensor
    empty: int

    @property
    def correct(self) -> Tensor:
        return self.given.label == self.labels

    def scores(self, statistic: str) -> Tensor:
        return uncertainty_score(statistic, self.given)

    def curves(self) -> dict[str, RiskCoverage]:
        return {name: risk_coverage(self.scores(name), self.correct) for name in statistics_of(self.given.samples)}


def judge(classifier: Classifier, splits: tuple[str, ...], progress: Progress = SILENT) -> dict[str, Judged]:
    """Predict those of these splits that the run has."""
    task = classifier.open_task()
    there = [name for name in splits if name in task.splits]
    groups = {name: [s for s in task.sentences[name] if len(s)] for name in there}
    predicted = classifier.predict(groups, progress.begin(len(classifier.samples)))
    return {name: judge_split(task, name, predicted[name]) for name in there}


def worded(task: ClassifyTask, split: str) -> Tensor:
    """Which sentences of a split have words."""
    return torch.tensor([len(sentence) > 0 for sentence in task.sentences[split]])


def judge_split(task: ClassifyTask, split: str, given: Predictive) -> Judged:
    """Predictions of those sentences of a split that have words, with their true classes."""
    there = worded(task, split)
    return Judged(given, task.targets[split][there], int((~there).sum()))


def learn(target: Target, valid: Judged) -> DecisionRule:
    """The threshold for a target; a risk that cannot be promised is refused with the least that can."""
    statistic, comparisons = target.statistic, 1
    if statistic == "auto":
        statistic, areas = best_statistic(valid.given, valid.labels)
        comparisons = len(areas)
    scores, correct = valid.scores(statistic), valid.correct
    if target.kind == "coverage":
        return threshold_at_coverage(scores, correct, coverage=target.value, statistic=statistic)
    confidence = CONFIDENCE if target.confidence is None else target.confidence
    return learn_threshold(
        scores, correct, risk=target.value, confidence=confidence, statistic=statistic, comparisons=comparisons
    )


def rule_for(classifier: Classifier, target: Target | None, progress: Progress = SILENT) -> DecisionRule:
    """The rule for a target, or for the last one that was asked for: from the run folder, or learned and kept there."""
    kept = read_rules(classifier.folder.path)
    if target is None:
        target = Target(**kept[-1]["asked"]) if kept else DEFAULT
    usable = statistics_of(len(classifier.samples))
    for entry in kept:
        same = entry["asked"] == asdict(target) and entry["samples"] == classifier.fingerprint
        if same and entry["rule"]["statistic"] in usable:
            rule = DecisionRule.from_json(json.dumps(entry["rule"]))
            if entry is not kept[-1]:
                with contextlib.suppress(LangevinError):  # a folder that may only be read still answers
                    keep_rule(classifier, target, rule)
            return rule
    rule = learn(target, judge(classifier, ("valid",), progress)["valid"])
    keep_rule(classifier, target, rule)
    return rule


def read_rules(path: Path) -> list[dict[str, Any]]:
    """All rules that were learned in this run folder, the last one asked for at the end."""
    file = inside(path, DECISIONS)
    if not file.exists():
        return []
    try:
        rules: list[dict[str, Any]] = read_sealed(file, "delete it")["rules"]
        for entry in rules:
            Target(**entry["asked"])
            DecisionRule.from_json(json.dumps(entry["rule"]))
            entry["samples"]
        return rules
    except (OSError, ValueError, KeyError, TypeError, LangevinError) as error:
        raise LangevinError(f"expected decision rules in {file}, it cannot be read ({error}); delete it to learn "
                            f"them again") from None


def keep_rule(classifier: Classifier, target: Target, rule: DecisionRule) -> None:
    """Put a rule at the end; others stay, except one for the same target and samples."""
    entry = {
        "asked": asdict(target), "samples": classifier.fingerprint, "count": len(classifier.samples),
        "collection": asdict(classifier.selection), "rule": json.loads(rule.to_json()),
    }
    same = ("asked", "samples")
    others = [e for e in read_rules(classifier.folder.path) if any(e[key] != entry[key] for key in same)]
    write_sealed(classifier.folder.path / DECISIONS, {"format": 1, "rules": [*others, entry]})


def caution(classifier: Classifier, rule: DecisionRule) -> str | None:
    """Why a promised risk is not exact: its validation sentences also chose the model. None where they did not."""
    chosen = chosen_on_validation(classifier.folder)
    if classifier.selection.how == BEST:
        chosen["which samples to average"] = f"leave --select {BEST} out"
    if rule.target != "risk" or not chosen:
        return None
    return (f"the validation sentences also chose {' and '.join(chosen)}, so the promise is a little optimistic; "
            f"{' and '.join(chosen.values())} for an exact one")


def chosen_on_validation(folder: RunFolder) -> dict[str, str]:
    """What the validation sentences chose of a run (or of its teacher), and how to take the choice from them."""
    chosen = dict[str, str]()
    if folder.recipe.run.patience is not None:
        chosen["when to stop"] = "train with patience=none"
    if "temperature_choice" in folder.facts:  # of runs that were made when validation could choose it
        chosen["the temperature"] = "name a temperature"
    teacher = Path(folder.origin.teacher.run) if folder.origin.teacher else None
    if teacher is not None and (teacher / RECIPE).is_file():
        chosen |= chosen_on_validation(RunFolder(teacher))
    return chosen


def decisions(rule: DecisionRule, given: Predictive, encoded: Encoded) -> list[str]:
    """What to do with each answer."""
    accepted = rule.decide(uncertainty_score(rule.statistic, given)).tolist()
    return [ACCEPT if yes and not empty else PERSON for yes, empty in zip(accepted, encoded.empty, strict=True)]


def decide_run(classifier: Classifier, target: Target, progress: Progress = SILENT) -> tuple[
    dict[str, Any], dict[str, Judged]
]:
    """Learn a rule, keep it, and see on the test split whether its promise holds. JSON-ready, and the predictions."""
    judged = judge(classifier, ("valid", "test"), progress)
    rule = learn(target, judged["valid"])
    keep_rule(classifier, target, rule)
    result = {
        "run": str(classifier.folder.path), "samples": len(classifier.samples), "skipped": classifier.skipped,
        "asked": asdict(target), "rule": json.loads(rule.to_json()), "caution": caution(classifier, rule),
        "valid": ranking(judged["valid"]), "test": None,
    }
    if "test" in judged:
        result["test"] = ranking(judged["test"]) | kept_promise(rule, judged["test"])
    return result, judged


def ranking(part: Judged) -> dict[str, Any]:
    """How well each statistic puts the wrong answers last. `oracle` is the area of a perfect ranking."""
    correct, curves = part.correct, part.curves()
    areas = {name: curve.aurc for name, curve in curves.items()}
    some_of_both = bool(correct.any()) and not bool(correct.all())
    return {
        "sentences": len(correct), "empty": part.empty, "error": 1 - correct.double().mean().item(), "aurc": areas,
        "best": min(areas, key=lambda name: areas[name]), "oracle": risk_coverage((~correct).double(), correct).aurc,
        "error_auroc": {name: auroc(part.scores(name)[~correct], part.scores(name)[correct]) for name in curves}
        if some_of_both else None,
        "risk_at": {name: {f"{c:g}": risk_at(curve, c) for c in RISK_AT} for name, curve in curves.items()},
        "curves": {name: thinned(curve) for name, curve in curves.items()},
    }


def risk_at(curve: RiskCoverage, coverage: float) -> float:
    """Risk at the smallest coverage of the curve that is at least this one."""
    return float(curve.risk[int((curve.coverage < coverage - 1e-9).sum())])


def thinned(curve: RiskCoverage) -> dict[str, list[float]]:
    at = torch.linspace(0, len(curve.risk) - 1, min(len(curve.risk), CURVE_POINTS)).round().long()
    return {"coverage": curve.coverage[at].tolist(), "risk": curve.risk[at].tolist()}


def kept_promise(rule: DecisionRule, test: Judged) -> dict[str, Any]:
    """The rule on sentences that it was not learned on.

    `held`: the risk is at most what was asked (None where nothing was accepted). `chance`: where the true risk is just
    the target, the probability of at least so many errors; small means that the promise was broken, not that luck was
    bad. Coverage promises neither.
    """
    accepted = rule.decide(test.scores(rule.statistic))
    number, errors = int(accepted.sum()), int((~test.correct & accepted).sum())
    coverage, risk = number / len(accepted), errors / number if number else 0.0
    told = {"accepted": number, "errors": errors, "coverage": coverage, "risk": risk}
    if rule.target == "coverage":
        return told | {"held": None, "chance": None}
    chance = 1.0 if errors == 0 else 1 - binomial_cdf(errors - 1, number, rule.value)
    return told | {"held": risk <= rule.value if number else None, "chance": chance}
