"""The decision rules that a run folder keeps, for the samples they were learnt with."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path

from pydantic import Field, JsonValue

from ..errors import LangevinError
from ..files import inside
from ..posterior.conformal import SetRule
from ..posterior.risk import DecisionRule
from ..posterior.uncertainty import statistics_of
from ..store.folder import DECISIONS
from ..store.records import Record, read_record, write_record
from .decision import AUTO, BY_DEFAULT, RiskTarget

ANEW = "delete it to learn its rules again"


class KeptTarget(Record):
    """What was asked for."""

    kind: str
    value: float
    confidence: float | None = None
    statistic: str = AUTO

    def target(self) -> RiskTarget:
        return RiskTarget(self.kind, self.value, self.confidence, self.statistic)


class KeptRule(Record):
    """A rule, the target it was learnt for, and the samples it was learnt with."""

    asked: KeptTarget
    samples: str
    """Their fingerprint."""
    count: int = 0
    rule: dict[str, JsonValue]
    collection: dict[str, JsonValue] | None = None
    """Of older versions: how they were named."""


class KeptSets(Record):
    """A rule for sets of classes, and the samples it was learnt with."""

    samples: str
    method: str
    alpha: float
    threshold: float
    items: int

    def rule(self) -> SetRule:
        return SetRule(self.method, self.alpha, self.threshold, self.items)


class KeptRules(Record):
    """All rules of a folder, the last one asked for at the end."""

    format: int = 1
    rules: list[KeptRule]
    sets: list[KeptSets] = Field(default_factory=list)


def read_rules(path: Path) -> KeptRules:
    """The rules that were learnt in a run folder."""
    file = inside(path, DECISIONS)
    if not file.exists():
        return KeptRules(rules=[])
    kept = read_record(file, KeptRules, ANEW)
    try:
        for entry in kept.rules:
            DecisionRule.from_dict(entry.rule)
        for sets in kept.sets:
            sets.rule()
    except LangevinError as error:
        raise LangevinError(f"{error} ({file}); {ANEW}") from None
    return kept


def last_target(path: Path) -> RiskTarget:
    """What was asked for last, or the default."""
    rules = read_rules(path).rules
    return rules[-1].asked.target() if rules else BY_DEFAULT


def kept_rule(
    path: Path, target: RiskTarget, fingerprint: str, draws: int
) -> DecisionRule | None:
    """The rule that was learnt for a target with these samples."""
    for kept in read_rules(path).rules:
        if kept.asked.target() == target and kept.samples == fingerprint:
            rule = DecisionRule.from_dict(kept.rule)
            if rule.statistic in statistics_of(draws):
                return rule
    return None


def keep_rule(
    path: Path, target: RiskTarget, fingerprint: str, draws: int, rule: DecisionRule
) -> None:
    """Put a rule at the end; others stay, except one for the same target and samples.

    A known rule that only comes to the end need not be written: a folder that may only be read
    answers too.
    """
    entry = KeptRule(asked=KeptTarget(**asdict(target)), samples=fingerprint, count=draws,
                     rule=rule.to_dict())
    before = read_rules(path)
    rules = before.rules
    if rules and rules[-1] == entry:
        return
    others = [kept for kept in rules if (kept.asked, kept.samples) != (entry.asked, entry.samples)]
    known = any(kept.rule == entry.rule for kept in rules if kept not in others)
    with contextlib.suppress(LangevinError) if known else contextlib.nullcontext():
        write_record(path / DECISIONS, KeptRules(rules=[*others, entry], sets=before.sets))


def kept_sets(path: Path, fingerprint: str, alpha: float | None = None) -> SetRule | None:
    """The rule for sets that was learnt last with these samples, or the last for this alpha."""
    for kept in reversed(read_rules(path).sets):
        if kept.samples == fingerprint and alpha in (None, kept.alpha):
            return kept.rule()
    return None


def keep_sets(path: Path, fingerprint: str, rule: SetRule) -> None:
    """Put a rule for sets at the end, in the place of one for the same alpha and samples."""
    before, entry = read_rules(path), KeptSets(samples=fingerprint, **asdict(rule))
    key = entry.samples, entry.alpha
    others = [kept for kept in before.sets if (kept.samples, kept.alpha) != key]
    write_record(path / DECISIONS, KeptRules(rules=before.rules, sets=[*others, entry]))
