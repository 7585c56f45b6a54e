"""The table of docs/results.md: each sampler beside its optimiser twin, made from `results/` and
never typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langevin.errors import LangevinError

from .numbers import better, load, ours
from .layout import DIGITS, markdown, show
from .pages import refuse_quick
from .targets import TARGETS, Target

Runs = list[dict[str, Any]]
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
METRICS = ("nll", "perplexity", "error", "cider")
"""Of a target's metrics, those that the page shows."""
COLUMNS = ("sampler", "T", "test", "paper: optimiser, sampler", "optimiser, one network", "optimiser, averaged",
           "sampler, averaged", "optimiser, best collection", "sampler, best collection", "runs")
NOTE = (
    "Each sampler against its optimiser twin (SGD for SGLD, RMSprop for pSGLD; with dropout, where the name says so), "
    "test split: the paper's two numbers, then ours. The last rows are the recipe of `langevin train --task classify` "
    "on TREC, on the sets that are named, and on TREC with word2vec's and spaCy's vectors.\n\n- One network: the weights "
    "that the validation split prefers, as early stopping would keep: by their error for the error, by their nll for "
    "all else.\n- Averaged: probabilities averaged over all samples (an optimiser's "
    "snapshots). Best collection: over those of them that the validation split prefers, of any number (`langevin "
    "train` chooses so among four or more; of classifiers it averages all).\n- Several runs (seeds or folds) are given as "
    "mean ± standard deviation.\n\nAll methods and metrics, calibration and what was not run: "
    "[reproduce.md](reproduce.md); what to make of it: [findings.md](findings.md)."
)


def refresh(page: str, results: Path, where: Path = Path("docs/results.md")) -> str:
    """The page with its table made anew."""
    lines = [line for target in TARGETS.values() for line in lines_of(target, results)]
    return between_marks(page, f"{markdown(COLUMNS, lines)}\n\n{NOTE}", where)


def between_marks(page: str, made: str, where: Path) -> str:
    """A page with what stands between its marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LangevinError(f"expected the lines {BEGIN} and {END} in {where}, got none; put them where the table "
                            f"shall stand")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def lines_of(target: Target, results: Path) -> list[tuple[str, ...]]:
    recorded = load(results, target)
    refuse_quick(recorded, results)
    lines = []
    for sampler, optimiser in target.pairs:
        mine, its = in_both(recorded.get(sampler, []), recorded.get(optimiser, []))
        if mine and (target.paper or same_but_for_rmsprop(sampler, optimiser)):
            names = (optimiser, sampler.removesuffix("-tempered"))
            lines += [line(sampler, mine, its, metric, [target.paper.get(cell, {}).get(metric) for cell in names])
                      for metric in target.metrics if metric in METRICS]
    return lines


def in_both(mine: Runs, its: Runs) -> tuple[Runs, Runs]:
    """The runs, seeds or folds, that were made of both."""
    keys = {run["key"] for run in mine} & {run["key"] for run in its}
    one, other = ([run for run in runs if run["key"] in keys] for runs in (mine, its))
    return one, other


def same_but_for_rmsprop(sampler: str, optimiser: str) -> bool:
    """Beside the paper's own pairs: a recipe for one's own data as it is, and with RMSprop, nothing
    else changed."""
    return optimiser in (f"{sampler}.rmsprop", f"{sampler}-rmsprop")


def line(sampler: str, mine: Runs, its: Runs, metric: str, printed: list[float | None]) -> tuple[str, ...]:
    """The best of our numbers stands out."""
    digits = DIGITS.get(metric, 3)
    theirs = dict.fromkeys(show(number, digits) for number in printed)
    numbers = [ours(runs, which, metric) for runs, which in (
        (its, "best"), (its, "averaged"), (mine, "averaged"), (its, "chosen"), (mine, "chosen"))]
    means = [number.mean for number in numbers if number]
    best = max(means) if better(metric, 1, 0) else min(means)
    shown = [f"**{show(number, digits)}**" if number and number.mean == best else show(number, digits)
             for number in numbers]
    temperature = ", ".join(dict.fromkeys(f"{run['temperature']:.3g}" for run in mine))
    return (f"`{sampler}`", temperature, metric, ", ".join(theirs), *shown, str(len(mine)))
