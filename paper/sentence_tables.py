"""What is told of the sentence sets beside their errors: calibration, rejection, other texts."""

from __future__ import annotations

from langevin.posterior.uncertainty import STATISTICS

from .layout import markdown, show
from .numbers import Recorded
from .tables import calibration_rows, rejection_rows, rejection_summary
from .targets import Target


def calibration_table(target: Target, recorded: Recorded) -> str:
    lines = [
        (f"`{row['cell']}`", row["way"], show(row["nll"], 3), show(row["brier"], 3), show(row["ece"], 3))
        for row in calibration_rows(target, recorded)
    ]
    return markdown(("run", "predicts by", "nll", "Brier", "ECE"), lines) if lines else ""


def rejection_table(target: Target, recorded: Recorded) -> str:
    """Areas in thousandths; the least of a row stands out."""
    lines = []
    for row in rejection_rows(target, recorded):
        means = [number.mean for number in row["aurc"].values()]
        areas = [f"**{1000 * mean:.1f}**" if mean == min(means) else f"{1000 * mean:.1f}" for mean in means]
        coverage = "—" if row["coverage"] is None else f"{row['coverage'].mean:.2f}"
        lines.append((f"`{row['cell']}`", *areas, f"{row['promised']} of {row['runs']}", coverage,
                      f"{row['held']} of {row['promised']}"))
    columns = ("run", *(name.replace("_", " ") for name in STATISTICS), "risk 0.05 promised", "mean coverage", "held")
    return markdown(columns, lines) if lines else ""


def rejection_summary_table(target: Target, recorded: Recorded) -> str:
    lines = [
        (row["set"], *(show(ratio, 2) for ratio in row["excess"].values()), f"{row['promised']} of {row['runs']}",
         f"{row['held']} of {row['promised']}")
        for row in rejection_summary(target, recorded)
    ]
    columns = ("set", *(name.replace("_", " ") for name in STATISTICS), "risk 0.05 promised", "held")
    return markdown(columns, lines) if lines else ""


def outside_table(target: Target, recorded: Recorded) -> str:
    """How well each statistic tells sentences of another kind from those of the run, by each way to
    predict."""
    lines = [
        (f"`{run}`", way, *(show(areas.get(name), 3) for name in STATISTICS))
        for runs in (recorded.get(name, []) for name in target.beside)
        for run, told in (runs[0].items() if runs else ()) if isinstance(told, dict)
        for way, areas in told["outside"]["auroc"].items()
    ]
    return markdown(("run", "predicts by", *(name.replace("_", " ") for name in STATISTICS)), lines) if lines else ""


MORE_TABLES = {
    "sentences": {
        "Calibration on the test sentences": calibration_table,
        "Which statistic rejects best: 1000 × area under the test risk-coverage curve, less is better": rejection_table,
        "The same by set: area over that of the best statistic, geometric mean of the methods": rejection_summary_table,
        "Out of domain: MR's sentences told from TREC's, area under the ROC curve (`langevin calibrate RUN --outside "
        "mr`)": outside_table,
    },
}
