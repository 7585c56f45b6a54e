"""The ratios that this project promises, each from two medians of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from .timing import fastest, ratio

Summaries = Mapping[str, Mapping[str, Any]]

FORMS = ("", " fused", " foreach", ", rbg")
"""What the names of other forms of the same contender end in; the fastest of them is compared."""


def required_ratios(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each promise: measured ratio and its spread, what it must be, what it should be,
    verdict."""
    return [*step_rows(results["steps"]), *part_rows(results), *epoch_rows(results["epochs"])]


def step_rows(steps: Mapping[str, Summaries]) -> Iterator[dict[str, Any]]:
    small = steps.get("PTB-small", {})
    yield row("SGLD : torch SGD, PTB-small", small, "SGLD", "torch SGD", at_most=(1.08, None))
    yield row("SGLD lazy rows : torch SGD, PTB-small", small, "SGLD lazy rows", "torch SGD", at_most=(1.08, 1.04))
    sparse = "torch SGD, sparse rows"
    yield row(f"SGLD lazy rows : {sparse}, PTB-small", small, "SGLD lazy rows", sparse)
    for shape in ("PTB-small", "PTB-medium"):
        own = steps.get(shape, {})
        yield row(f"PSGLD : torch RMSprop, {shape}", own, "PSGLD", "torch RMSprop", at_most=(1.05, 1.0))
        yield row(f"PSGLD lazy rows : torch RMSprop, {shape}", own, "PSGLD lazy rows", "torch RMSprop")
    for name in ("SGHMC", "SGNHT", "Santa"):
        yield row(f"{name} : torch momentum, PTB-small", small, name, "torch momentum", at_most=(1.15, 1.08))
    yield row("posteriors SGLD : SGLD, PTB-small", small, "posteriors SGLD", "SGLD", at_least=(1.6, 2.0))
    yield row("posteriors SGHMC : SGHMC, PTB-small", small, "posteriors SGHMC", "SGHMC")
    yield row("blackjax SGLD : SGLD, PTB-small", small, "blackjax SGLD", "SGLD", at_least=(1.4, 1.8))


def part_rows(results: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    large = results["updates"].get("20000000", {})
    yield row("SGLD noise and update : normal_ alone, 20 M weights", large, "SGLD", "normal_", at_most=(0.45, 0.35))
    title = "SGLD embedding of 1000000 rows : 10000 rows"
    yield row(title, results["rows"], "V=1000000", "V=10000", at_most=(1.5, 1.1))
    imports = results["imports"]
    yield row("import langevin : import torch", imports, "import langevin", "import torch", at_most=(1.2, None))


def epoch_rows(pairs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for pair in pairs:
        bounds = (pair["must"], pair["goal"])
        yield row(pair["title"], pair["measured"], pair["sampler"], pair["optimiser"], at_most=bounds)


def row(
    title: str, measured: Summaries, one: str, other: str, *, at_most: tuple[float, float | None] | None = None,
    at_least: tuple[float, float | None] | None = None,
) -> dict[str, Any]:
    """`one` : `other`, each in its fastest form. Without bounds it is told, not judged."""
    sign, (must, goal) = ("≥", at_least) if at_least else ("≤", at_most or (None, None))
    line = {"what": title, "sign": sign, "must": must, "goal": goal, "ratio": None, "verdict": "not measured"}
    first, second = (fastest(measured, [name + form for form in FORMS]) for name in (one, other))
    if first is None or second is None:
        return line
    line |= ratio(measured[first], measured[second]) | {"names": [first, second]}
    line["by_parts"] = by_parts(measured, one, other)
    return line | {"verdict": verdict(line["ratio"], sign, must, goal)}


def by_parts(measured: Summaries, one: str, other: str) -> float | None:
    """(gradient + update of one) : (gradient + update of the other), with one gradient time for
    both.

    The gradient is the same computation for every dense contender of this process, but its time
    varies by more than the updates differ. This takes its median over all of them, and the faster
    update of each side's forms.
    """
    split = {name: s for name, s in measured.items() if "update" in s}
    first, second = (
        min((split[name + form]["update"] for form in FORMS if name + form in split), default=None)
        for name in (one, other)
    )
    if first is None or second is None:
        return None
    gradient = median(s["gradient"] for s in split.values())
    return float((gradient + first) / (gradient + second))


def verdict(value: float, sign: str, must: float | None, goal: float | None) -> str:
    def reached(bound: float) -> bool:
        return value >= bound if sign == "≥" else value <= bound

    if must is None:
        return "told"
    if not reached(must):
        return "missed"
    return "goal" if goal is not None and reached(goal) else "met"
