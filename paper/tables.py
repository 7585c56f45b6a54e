"""Numbers → the rows of a table: the paper's number, ours, the difference, and whether the claim
holds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from . import printed as paper
from .numbers import Number, Recorded, better, ours, value_of
from .questions import COMPARED, MASKS
from .targets import TIMES, Target

QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % of Student's t with 1, 2, … degrees of freedom; the last serves for more."""


def cell_rows(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """One entry for each cell and metric, also where nothing was run.

    The difference to the paper is that of like things: the average of a sampler, the weights that
    an optimiser's validation would keep.
    """
    rows = []
    for cell in target.cells:
        runs = recorded.get(cell, [])
        # several where they were chosen
        temperatures = sorted({run["temperature"] for run in runs})
        for metric in target.metrics:
            printed = target.paper.get(cell, {}).get(metric)
            numbers = {which: ours(runs, which, metric) for which in ("single", "best", "averaged", "chosen", "valid")}
            like = like_the_paper(runs, metric)
            rows.append({
                "cell": cell, "metric": metric, "paper": printed, "paper_std": std_in_paper(target, cell, metric),
                "runs": len(runs), **numbers,
                "temperatures": temperatures, "precision": precisions(runs),
                "difference": like.mean - printed if like and printed is not None else None,
            })
    return rows


def precisions(runs: Sequence[Mapping[str, Any]]) -> str | None:
    """All that occur among some runs."""
    return " and ".join(sorted({run["recipe"]["run"].get("precision", "float32") for run in runs})) or None


def std_in_paper(target: Target, cell: str, metric: str) -> float | None:
    """Printed for the errors of classifiers only."""
    return target.paper.get(cell, {}).get("std") if metric == "error" else None


def like_the_paper(runs: Sequence[Mapping[str, Any]], metric: str) -> Number | None:
    """What the paper would print of these runs: of a sampler the average, of an optimiser the
    weights it would keep."""
    if runs and runs[0]["temperature"]:
        return ours(runs, "averaged", metric)
    return ours(runs, "best", metric) or ours(runs, "single", metric)


def column_rows(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """For each data set or model (a column of the paper) and metric: the methods from the best on,
    theirs and ours.

    Only the columns of which something was run. `best` is our best number of all, collections and
    averages of optimisers included.
    """
    made = []
    for group, cells in grouped(target.cells if target.paper else ()).items():
        for metric in target.metrics:
            printed = {cell: target.paper[cell][metric] for cell in cells if metric in target.paper.get(cell, {})}
            like = {cell: like_the_paper(recorded.get(cell, []), metric) for cell in cells}
            measured = {cell: number.mean for cell, number in like.items() if number}
            if not printed or not measured:
                continue
            others = [ours(recorded.get(cell, []), which, metric) for cell in cells for which in ("averaged", "chosen")]
            every = [*measured.values(), *(number.mean for number in others if number)]
            upwards = better(metric, 1, 0)
            best, theirs = (max if upwards else min)(every), (max if upwards else min)(printed.values())
            counts = sorted({len(recorded[cell]) for cell in measured})
            made.append({
                "column": group, "metric": metric, "paper": ranked(printed, group, upwards=upwards),
                "ours": ranked(measured, group, upwards=upwards), "best_of_paper": theirs, "best": best,
                "better": better(metric, best, theirs), "runs": counts,
            })
    return made


def grouped(cells: Sequence[str]) -> dict[str, list[str]]:
    """Cells of one column: names that agree up to the method."""
    groups: dict[str, list[str]] = {}
    for cell in cells:
        head = next(cell.partition(f"-{method}")[0] for method in ("rmsprop", "psgld", "sgd", "sgld")
                    if f"-{method}" in cell)
        groups.setdefault(head, []).append(cell)
    return groups


def ranked(numbers: Mapping[str, float], group: str, *, upwards: bool) -> list[str]:
    """The methods, the best first."""
    order = sorted(numbers, key=lambda cell: -numbers[cell] if upwards else numbers[cell])
    return [cell.removeprefix(f"{group}-") for cell in order]


def claims(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """For each pair of twins and metric: does the averaged sampler beat the optimiser, and the
    optimiser averaged?

    `chosen_beats_best` takes of the sampler the collection that validation chose, of the optimiser
    the weights:
    `beats_chosen` compares two collections, the fairest question of all. `paper` is what the
    paper's own two numbers say.
    """
    made = []
    for sampler, optimiser in target.pairs:
        if sampler not in recorded or optimiser not in recorded:
            continue
        for metric in (*target.metrics, *target.claimed):
            mine, its = recorded[sampler], recorded[optimiser]
            kept = "best" if ours(its, "best", metric) else "single"
            answers = {
                "beats_last": compared(mine, "averaged", its, "single", metric),
                "beats_best": compared(mine, "averaged", its, "best", metric),
                "chosen_beats_best": compared(mine, "chosen", its, "best", metric),
                "beats_averaged": compared(mine, "averaged", its, "averaged", metric),
                "beats_chosen": compared(mine, "chosen", its, "chosen", metric),
            }
            gain, base = compared(mine, "averaged", its, kept, metric), ours(its, kept, metric)
            one, two = (target.paper.get(cell, {}).get(metric) for cell in (sampler, optimiser))
            if gain and base:
                sign = 1 if better(metric, 1, 0) else -1
                made.append({
                    "sampler": sampler, "optimiser": optimiser, "metric": metric, **answers,
                    "paper": better(metric, one, two) if one is not None and two is not None else None,
                    "gain": sign * gain["difference"] / base.mean,
                })
    return made


def compared(
    mine: Sequence[Mapping[str, Any]], which: str, its: Sequence[Mapping[str, Any]], other: str, metric: str
) -> dict[str, Any] | None:
    """Mine minus its, seed by seed or fold by fold, and an answer: yes, no, or level, when a t-test
    cannot tell."""
    partner = {run["key"]: run for run in its}
    pairs = [(value_of(run, which, metric), value_of(partner[run["key"]], other, metric))
             for run in mine if run["key"] in partner]
    difference = Number.of([one - two for one, two in pairs if one is not None and two is not None])
    if difference is None:
        return None
    answer = "yes" if better(metric, difference.mean, 0) else "no" if difference.mean else "level"
    if difference.std is not None:
        limit = QUANTILES[min(difference.runs - 1, len(QUANTILES)) - 1] * difference.std / math.sqrt(difference.runs)
        answer = "level" if abs(difference.mean) <= limit else answer
    return {"answer": answer, "difference": difference.mean, "std": difference.std, "runs": difference.runs,
            "one_precision": precisions(mine) == precisions(its)}


FOUR_WAYS = ("optimiser", "noise only", "averaging only", "both")


def ablation_rows(recorded: Recorded) -> list[dict[str, Any]]:
    """Optimiser, noise only (the sampler's last sample), averaging only (the optimiser's average),
    both.

    `ours` takes the last weights where nothing is averaged, `kept` those that validation prefers.
    """
    cells = {"trec": ("trec-rmsprop", "trec-psgld", "error"),
             "ptb-small": ("ptb-small-random-sgd", "ptb-small-random-sgld", "perplexity")}
    rows = []
    for name, (optimiser, sampler, metric) in cells.items():
        plain, noisy = recorded.get(optimiser, []), recorded.get(sampler, [])
        averaged = [ours(plain, "averaged", metric), ours(noisy, "averaged", metric)]
        rows.append({
            "set": name, "metric": metric, "paper": paper.ABLATION[name], "runs": [len(plain), len(noisy)],
            "ours": [ours(plain, "single", metric), ours(noisy, "single", metric), *averaged],
            "kept": [ours(plain, "best", metric), ours(noisy, "best", metric), *averaged],
            "both_to_averaging": compared(noisy, "averaged", plain, "averaged", metric),
            "both_to_optimiser": compared(noisy, "averaged", plain, "best", metric),
        })
    return rows


def ablation_order(numbers: Sequence[float]) -> list[str]:
    """The four ways of the ablation, the best first."""
    return sorted(FOUR_WAYS, key=dict(zip(FOUR_WAYS, numbers, strict=True)).__getitem__)


def one_machine(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """As far as both tell."""
    here, there = one.get("machine", {}), other.get("machine", {})
    return all(here[key] == there[key] for key in here.keys() & there.keys())


def time_rows(recorded: Recorded) -> list[dict[str, Any]]:
    """Ratios pSGLD : RMSprop + dropout. Of whole runs on one machine, which may have had other
    work; and measured in turn by benchmarks."""
    sampler, optimiser = recorded.get("flickr8k-psgld", []), recorded.get("flickr8k-rmsprop-dropout", [])
    same = sampler and optimiser and one_machine(sampler[0], optimiser[0])
    measured = {name: recorded[name][0] for name in TIMES if name in recorded}
    samples = measured.get("bench-captioning", {}).get("samples", "all")
    stages = {"bench-epochs-flickr8k": ("training, an epoch of each in turn", "training"),
              "bench-captioning": (f"testing, {samples} samples : one sample of the same run", "testing")}
    ratios = {stage: one / other for stage, (one, other) in paper.TIME.items()}
    whole = {"stage": "training, minutes of the runs, which may have shared the machine", "paper": ratios["training"],
             "by": "the runs", "ours": sampler[0]["minutes"] / optimiser[0]["minutes"] if same else None}
    return [whole, *(
        {"stage": title, "paper": ratios[stage], "by": f"python -m {TIMES[name].module}",
         "ours": measured[name][TIMES[name].ratio]["ratio"] if name in measured else None}
        for name, (title, stage) in stages.items()
    )]


def calibration_rows(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """How far the probabilities can be believed: each way to predict of each cell that was run."""
    ways = {"last sample": "single", "best sample": "best", "average": "averaged", "dropout, 20 masks": "mc_dropout"}
    rows = [
        {"cell": cell, "way": way, **{metric: ours(recorded.get(cell, []), which, metric)
                                      for metric in ("nll", "brier", "ece")}}
        for cell in target.cells for way, which in ways.items()
    ]
    return [row for row in rows if row["nll"] is not None]


def rejection_rows(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """Area under the risk-coverage curve of each statistic, and how often the promised risk could
    be given and held."""
    rows = []
    for cell in target.cells:
        told = [run["rejection"] for run in recorded.get(cell, []) if "rejection" in run]
        if told:
            given = [one for one in told if one.get("held") is not None]
            areas = {name: Number.of([one["aurc"][name] for one in told]) for name in told[0]["aurc"]}
            rows.append({
                "cell": cell, "aurc": areas,
                "runs": len(told), "promised": len(given), "held": sum(one["held"] for one in given),
                "coverage": Number.of([one["coverage"] for one in given]),
            })
    return rows


def rejection_summary(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """Each statistic against the best one of each cell: the geometric mean of the ratios, by set
    and over all sets."""
    told = {row["cell"]: row for row in rejection_rows(target, recorded)}
    groups = {name: [told[cell] for cell in cells if cell in told] for name, cells in grouped(target.cells).items()}
    groups["all"] = list(told.values())
    return [
        {"set": name, "excess": {statistic: mean_ratio(rows, statistic) for statistic in rows[0]["aurc"]},
         **{key: sum(row[key] for row in rows) for key in ("runs", "promised", "held")}}
        for name, rows in groups.items() if rows
    ]


def mean_ratio(rows: Sequence[dict[str, Any]], statistic: str) -> float | None:
    """Of the areas of one statistic to the least of each row; rows without any error tell
    nothing."""
    pairs = [(row["aurc"][statistic].mean, min(area.mean for area in row["aurc"].values())) for row in rows]
    ratios = [area / least for area, least in pairs if least > 0]
    return statistics.geometric_mean(ratios) if ratios else None


def alternative_rows(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """One entry for each method of a table of alternatives, with the networks that it runs at test
    time."""
    rows = []
    for method, cell, which in COMPARED[target.name]:
        runs = recorded.get(cell, [])
        networks = {"averaged": runs[0]["samples"], "mc_dropout": MASKS}.get(which, 1) if runs else None
        numbers = {metric: ours(runs, which, metric) for metric in target.metrics}
        rows.append({"method": method, "cell": cell, "networks": networks, "precision": precisions(runs), **numbers})
    return rows
