"""Classified sentences, decisions and their calibration as tables and figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from ..errors import LangevinError
from ..posterior.risk import DecisionRule
from ..predict.calibrating import bins_of
from ..predict.decision import ACCEPT, Judged
from ..predict.uncertain import Landscape
from .figures import (
    draw_lines,
    draw_points,
    draw_reliability,
    draw_risk_coverage,
    embed_2d,
    finish,
    save_figure,
    write_figure,
)
from .terminal import table

LONGEST = 80
"""Characters of a text in a table."""


def shortened(text: str) -> Text:
    line = " ".join(text.split())
    return Text(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…")


def sureness(p: float) -> Text:
    """A probability from red (0) to green (1)."""
    return Text(f"{p:.3f}", style=f"rgb({round(220 - 160 * p)},{round(60 + 140 * p)},80)")


def rule_in_words(rule: DecisionRule) -> str:
    """What a rule does and promises."""
    statistic = rule.statistic.replace("_", " ")
    seen = f"on validation it accepts {rule.coverage:.1%}, {rule.risk:.1%} of them wrong"
    if rule.target == "coverage":
        return f"accept by {statistic}, coverage about {rule.value:g} ({seen})"
    return f"accept by {statistic}, risk at most {rule.value:g} with confidence {rule.confidence:g} ({seen})"


def answer_table(answered: Sequence[dict[str, Any]], rule: DecisionRule | None, samples: int) -> Group:
    """One line for each text."""
    title = f"average of {samples} samples"
    rows = [
        (
            shortened(answer["text"]) if not answer["empty"] else Text("(empty)", style="dim"), Text(answer["name"]),
            sureness(answer["probability"]), f"{answer['std']:.3f}", f"{answer['entropy']:.3f}",
            f"{answer['mutual_information']:.3f}", decision(answer["decision"]),
        )
        for answer in answered
    ]
    columns = ("text", "label", "mean p", "± std", "entropy", "mut. inf.", "decision")
    return table(title if rule is None else f"{title}; {rule_in_words(rule)}", columns, rows, words=True)


def decision(made: str | None) -> Text:
    return Text(made or "—", style="green" if made == ACCEPT else "yellow")


def ranking_table(result: dict[str, Any]) -> Group:
    """How well each statistic puts the wrong answers last, on validation and test; the best of each in green.

    "at 90%": the error among the most certain 90% of the answers.
    """
    parts = [(name, result[name]) for name in ("valid", "test") if result[name]]
    columns = ["statistic"]
    for name, _ in parts:
        columns += [f"{name} AURC", "at 90%", "at 80%"]
    rows = []
    for statistic in result["valid"]["aurc"]:
        row: list[str | Text] = [statistic.replace("_", " ")]
        for _, part in parts:
            best = "green" if part["best"] == statistic else ""
            at = part["risk_at"][statistic]
            row += [Text(f"{part['aurc'][statistic]:.4f}", style=best), f"{at['0.9']:.2%}", f"{at['0.8']:.2%}"]
        rows.append(row)
    errors = ", ".join(f"{name} {part['error']:.2%}" for name, part in parts)
    return table(f"{result['run']}, {result['samples']} samples; error of all answers: {errors}", columns, rows)


def promise_in_words(result: dict[str, Any]) -> Text:
    """The rule, what became of it on the test split, and why its promise may not be exact."""
    rule, test = DecisionRule.from_json(json.dumps(result["rule"])), result["test"]
    said = Text(rule_in_words(rule))
    if test is None:
        said.append("; the run has no test split to see whether it holds")
    else:
        said.append(f"; on test it accepts {test['coverage']:.1%}, {test['risk']:.1%} of them wrong")
    if test is not None and test["held"] is not None:
        broken = f": NOT held (by chance in {test['chance']:.1%} of cases)"
        said.append(": the promise held" if test["held"] else broken, style="green" if test["held"] else "red")
    return said.append(f"\n{result['caution']}", style="yellow") if result["caution"] else said


def draw_decision(path: Path, part: Judged, target: float | None) -> None:
    """Risk against coverage for all statistics."""
    curves = {name.replace("_", " "): curve for name, curve in part.curves().items()}
    save_figure(path, lambda axes: draw_risk_coverage(axes, curves, target))


def draw_landscape(path: Path, land: Landscape, circled: int) -> None:
    """t-SNE of the sentences coloured by their class, the least certain circled and numbered as in the table."""
    points = embed_2d(land.states)
    save_figure(path, lambda axes: draw_points(axes, points, land.labels, land.names, land.scores, circled),
                size=(7.0, 5.0))


def calibration_table(result: dict[str, Any]) -> Group:
    """Error, NLL, Brier score and ECE of each way to predict."""
    rows = [
        (name, f"{m['error']:.2%}", f"{m['nll']:.4f}", f"{m['brier']:.4f}", f"{m['ece']:.4f}",
         f"{m['ece_equal_mass']:.4f}")
        for name, m in result["methods"].items()
    ]
    title = f"{result['run']} on {result['split']}, {result['sentences']} sentences"
    return table(title, ("prediction", "error", "NLL", "Brier", "ECE", "ECE, equal mass"), rows)


def outside_table(outside: dict[str, Any]) -> Group:
    """AUROC of each statistic of each way to predict."""
    names = list(dict.fromkeys(name for told in outside["auroc"].values() for name in told))
    rows = [(method, *(f"{told[name]:.4f}" if name in told else "" for name in names))
            for method, told in outside["auroc"].items()]
    title = f"{outside['texts']} texts of {outside['source']} told from those of the run: AUROC of each statistic"
    return table(title, ("prediction", *(name.replace("_", " ") for name in names)), rows)


def draw_calibration(path: Path, methods: Mapping[str, dict[str, Any]]) -> None:
    save_figure(path, lambda axes: draw_reliability(axes, {name: bins_of(m) for name, m in methods.items()}))


def draw_runs(path: Path, runs: Sequence[dict[str, Any]]) -> None:
    """Learning curves: one panel for each split, one line for each run."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LangevinError("figures need matplotlib; install langevin[report]") from None
    splits = list(dict.fromkeys(split for run in runs for split in run["curves"]))
    figure = Figure(figsize=(4.2 * len(splits), 3.6), layout="constrained")
    for place, split in enumerate(splits, 1):
        axes = figure.add_subplot(1, len(splits), place)
        draw_lines(axes, {
            f"{Path(run['run']).name} ({run['shown']})": (run["epochs"], run["curves"][split][run["shown"]])
            for run in runs if split in run["curves"]
        })
        axes.set(title=split, xlabel="training time (epochs)", ylabel="error (%)")
        axes.set_ylim(bottom=0)
        finish(axes)
    write_figure(path, figure)
