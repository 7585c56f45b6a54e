"""Classified sentences, decisions and their calibration as tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from ..errors import LangevinError
from ..posterior.risk import DecisionRule
from ..predict.answers import ACCEPT, PERSON, Answers
from ..predict.calibration import Calibration, MethodScores, OutsideTexts
from ..predict.decision import Decision
from ..predict.prediction_sets import PredictionSets
from ..predict.results import Prediction
from ..predict.sentence_map import SentenceMap
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    if rule.target == "cost":
        return f"accept by {statistic}, cheapest where an error costs {rule.value:g} persons ({seen})"
    if rule.target == "coverage":
        return f"accept by {statistic}, coverage about {rule.value:g} ({seen})"
    return f"accept by {statistic}, risk at most {rule.value:g} with confidence {rule.confidence:g} ({seen})"


def answer_table(
    answered: Sequence[Prediction], rule: DecisionRule | None, samples: int,
    names: Mapping[str, str],
) -> Group:
    """One line for each text; labels by their names."""
    title = f"average of {samples} samples"
    rows = [
        (
            shortened(one.text or "") if not one.empty else Text("(empty)", style="dim"),
            Text(names[one.label]), sureness(one.p[one.label]), f"{one.std[one.label]:.3f}",
            f"{one.entropy:.3f}", f"{one.mutual_information:.3f}", decision(one.accepted),
        )
        for one in answered
    ]  # fmt: skip
    columns = ("text", "label", "mean p", "± std", "entropy (nats)", "mut. inf. (nats)", "decision")
    title = title if rule is None else f"{title}; {rule_in_words(rule)}"
    return table(title, columns, rows, words=True)


def decision(accepted: bool | None) -> Text:
    if accepted is None:
        return Text("—", style="yellow")
    return Text(ACCEPT, style="green") if accepted else Text(PERSON, style="yellow")


def answers_in_words(answers: Answers) -> Text:
    """Where the answers are, and how many of them are wrong; nothing where neither is to be
    said."""
    lines = Text()
    if answers.out is not None:
        lines.append(f"{answers.items} answers in {answers.out}")
        if answers.rule is not None:
            lines.append(f", {answers.accepted} of them accepted: {rule_in_words(answers.rule)}")
        lines.append("\n")
    if answers.labelled:
        share = (answers.wrong or 0) / answers.labelled
        lines.append(f"wrong: {answers.wrong} of {answers.labelled} ({share:.2%})\n")
    return lines


def ranking_table(decision: Decision) -> Group:
    """How well each statistic puts the wrong answers last, on validation and test; the best of each
    in green.

    "error at 90%": the error among the most certain 90% of the answers.
    """
    parts = [(name, part) for name, part in (("valid", decision.valid), ("test", decision.test)) if part]
    columns = ["statistic"]
    for name, _ in parts:
        columns += [f"{name} AURC", "error at 90%", "at 80%"]
    rows = []
    for statistic in decision.valid.aurc:
        row: list[str | Text] = [statistic.replace("_", " ")]
        for _, part in parts:
            best = "green" if part.best == statistic else ""
            at = part.risk_at[statistic]
            row += [Text(f"{part.aurc[statistic]:.4f}", style=best), f"{at['0.9']:.2%}",
                    f"{at['0.8']:.2%}"]
        rows.append(row)
    errors = ", ".join(f"{name} {part.error:.2%}" for name, part in parts)
    title = f"{decision.run}, {decision.samples} samples; error of all answers: {errors}"
    return table(title, columns, rows)


def promise_in_words(decision: Decision) -> Text:
    """The rule, what became of it on the test split, and why its promise may not be exact."""
    line, test = Text(rule_in_words(decision.rule)), decision.promise
    if test is None:
        line.append("; the run has no test split to see whether it holds")
    else:
        line.append(f"; on test it accepts {test.coverage:.1%}, {test.risk:.1%} of them wrong")
    if test is not None and test.held is not None:
        broken = f": NOT held (by chance in {test.chance:.1%} of cases)"
        line.append(": the promise held" if test.held else broken,
                    style="green" if test.held else "red")
    return line.append(f"\n{decision.caution}", style="yellow") if decision.caution else line


def sets_in_words(sets: PredictionSets) -> Text:
    """What sets promise, what became of it on the test split, and why it may not be exact."""
    rule, test = sets.rule, sets.test
    line = Text(f"the sets hold the true class of {1 - rule.alpha:.1%} of new texts, learnt on "
                f"{rule.items} validation sentences")
    if test is None:
        line.append("; the run has no test split to see whether it holds")
    else:
        line.append(f"; on test they hold {test.coverage:.1%} and have {test.size:.2f} classes, "
                    f"{test.single:.1%} of them one (so few by chance in {test.chance:.1%} of "
                    f"cases if the promise holds)")
    return line.append(f"\n{sets.caution}", style="yellow") if sets.caution else line


def draw_decision(path: Path, decision: Decision) -> None:
    """Risk against coverage for all statistics, on test, or on validation where there is none."""
    curves = {name.replace("_", " "): curve for name, curve in decision.splits[-1].curves().items()}
    target = decision.asked.value if decision.asked.kind == "risk" else None
    save_figure(path, lambda axes: draw_risk_coverage(axes, curves, target))


def draw_sentence_map(path: Path, shown: SentenceMap) -> None:
    """t-SNE of the sentences coloured by their class, the least certain circled and numbered as in
    the table."""
    points = embed_2d(shown.states)

    def draw(axes: Axes) -> None:
        draw_points(axes, points, shown.labels, shown.names, shown.scores, len(shown.listed))

    save_figure(path, draw, size=(7.0, 5.0))


def calibration_table(calibration: Calibration) -> Group:
    """Error, NLL, Brier score and ECE of each way to predict."""
    rows = [
        (name, f"{m.error:.2%}", f"{m.nll:.4f}", f"{m.brier:.4f}", f"{m.ece:.4f}",
         f"{m.ece_equal_mass:.4f}")
        for name, m in calibration.methods.items()
    ]
    title = f"{calibration.run} on {calibration.split}, {calibration.items} sentences"
    return table(title, ("prediction", "error", "NLL", "Brier", "ECE", "ECE, equal mass"), rows)


def outside_table(outside: OutsideTexts) -> Group:
    """AUROC of each statistic of each way to predict."""
    names = list(dict.fromkeys(name for told in outside.auroc.values() for name in told))
    rows = [(method, *(f"{told[name]:.4f}" if name in told else "" for name in names))
            for method, told in outside.auroc.items()]
    title = (f"{outside.texts} texts of {outside.source} told from those of the run: AUROC of each "
             f"statistic")
    return table(title, ("prediction", *(name.replace("_", " ") for name in names)), rows)


def draw_calibration(path: Path, methods: Mapping[str, MethodScores]) -> None:
    bins = {name: method.reliability() for name, method in methods.items()}
    save_figure(path, lambda axes: draw_reliability(axes, bins))


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
