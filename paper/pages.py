"""Tables as Markdown: `docs/reproduce.md`, made from `results/` and never typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langevin.errors import LangevinError

from .figures import FOLDER, is_drawn, kept_numbers
from .layout import DIGITS, markdown, show
from .numbers import Recorded, load, read_result
from .questions import COMPARED
from .sentence_tables import MORE_TABLES
from .tables import (
    FOUR_WAYS,
    ablation_order,
    ablation_rows,
    alternative_rows,
    cell_rows,
    claims,
    column_rows,
    time_rows,
)
from .targets import CORE, TARGETS, Target, minutes_of

NOTE = (
    "Last sample: the weights at the end of the run. Best sample: the one that the validation split prefers, as early "
    "stopping would: by its error for the error, by its nll for all else. Average: probabilities averaged over all "
    "samples. Best collection: the forward, backward or thinned collection and number of samples that the validation "
    "split prefers (commands take at least four).\n\nOurs − paper: of a sampler the average, of an optimiser the best "
    "sample. Several runs (seeds or folds) are given as mean ± standard deviation. — was not run, or not "
    "recorded (the collections of classifiers are chosen and recorded by their error)."
)
ORDER = (
    "Average of the sampler against its optimiser twin, run by run, as difference ± standard deviation; level: not to "
    "be told from none by a t-test at 5 %, each by itself (of many such comparisons some err). One run tells no spread."
)
COLUMNS = (
    "All methods in each column: of samplers the average, of optimisers the best sample. Our best: of all numbers of "
    "the column, averages of optimisers and best collections included: the best of many on the test split, so by "
    "itself no evidence. Runs: of each cell; the paper's means of sentence sets are over ten folds or runs."
)
TIMES_NOTE = (
    "The paper's seconds are of Flickr30k, ours of Flickr8k. Training: pSGLD against RMSprop + dropout. Testing: the "
    "paper has pSGLD's samples against the one network of RMSprop + dropout; ours is all samples of one run against "
    "one of them, networks of the same size, so that nothing but the number of networks differs. How many samples the "
    "paper's time is of, it does not say."
)
ABLATION = (
    "Last weights: at the end of the run (on TREC early stopping ends it; on Penn Treebank the optimiser has "
    "overfitted by then). Best sample: the weights that validation would keep. The paper's numbers for Penn Treebank "
    "are those of neither half of its Table 3."
)


def table_of(target: Target, recorded: Recorded) -> str:
    """One line for each cell (and metric, where there are several) that is in the paper or was run;
    else nothing."""
    several = len(target.metrics) > 1
    shown = {"single": "last sample", "best": "best sample", "averaged": "average", "chosen": "best collection"}
    if target.tuned:
        shown = {"valid": "validation, average"} | shown
    lines = []
    for row in cell_rows(target, recorded):
        if not target.paper and not row["runs"]:
            continue
        digits = DIGITS.get(row["metric"], 3)
        difference = "—" if row["difference"] is None else f"{row['difference']:+.{digits}f}"
        lines.append((
            f"`{row['cell']}`", *([row["metric"]] if several else []),
            ", ".join(f"{temperature:.3g}" for temperature in row["temperatures"]) or "—",
            *([of_paper(row, digits)] if target.paper else []), *(show(row[which], digits) for which in shown),
            *([difference] if target.paper else []), str(row["runs"]), row["precision"] or "—",
        ))
    columns = ("run", *(["metric"] if several else []), "T", *(["paper"] if target.paper else []),
               *shown.values(), *(["ours − paper"] if target.paper else []), "runs", "precision")
    return markdown(columns, lines) if lines else ""


def of_paper(row: dict[str, Any], digits: int) -> str:
    return show(row["paper"], digits) + ("" if row["paper_std"] is None else f" ± {row['paper_std']:.{digits}f}")


QUESTIONS = ("beats_last", "beats_best", "chosen_beats_best", "beats_averaged", "beats_chosen")


def claims_of(target: Target, recorded: Recorded) -> str:
    """Does the paper's ordering hold? A line for each pair of twins that was run."""
    lines = []
    for claim in claims(target, recorded):
        digits = DIGITS.get(claim["metric"], 3)
        lines.append((
            f"`{claim['sampler']}`", f"`{claim['optimiser']}`", claim["metric"],
            {True: "yes", False: "no", None: "—"}[claim["paper"]],
            *(answer_of(claim[key], digits) for key in QUESTIONS),
            f"{100 * claim['gain']:+.1f} %",
        ))
    if not lines:
        return ""
    columns = ("sampler", "optimiser", "metric", "better in the paper", "beats its last weights",
               "beats its best sample", "best collection beats its best sample", "beats its average",
               "best collection beats its best collection", "gain over its best sample")
    return f"{ORDER}\n\n{markdown(columns, lines)}"


def answer_of(comparison: dict[str, Any] | None, digits: int) -> str:
    if comparison is None:
        return "—"
    spread = "one run" if comparison["std"] is None else f"± {comparison['std']:.{digits}f}"
    answer = {"no": "**no**"}.get(comparison["answer"], comparison["answer"])
    unlike = "" if comparison["one_precision"] else ", of two precisions"
    return f"{answer}, {comparison['difference']:+.{digits}f} ({spread}{unlike})"


def columns_of(target: Target, recorded: Recorded) -> str:
    """The order of all methods in each column of the paper of which something was run."""
    lines = []
    for row in column_rows(target, recorded):
        digits = DIGITS.get(row["metric"], 3)
        lines.append((
            row["column"], row["metric"], ", ".join(row["paper"]), ", ".join(row["ours"]),
            show(row["best_of_paper"], digits), show(row["best"], digits), "yes" if row["better"] else "**no**",
            " or ".join(map(str, row["runs"])),
        ))
    if not lines:
        return ""
    columns = ("column", "metric", "methods in the paper, best first", "ours, best first", "the paper's best",
               "our best", "ours better", "runs")
    return f"{COLUMNS}\n\n{markdown(columns, lines)}"


def not_run(target: Target, recorded: Recorded, *, quick: bool = False) -> str:
    """Which cells are missing and why: what they would cost, or that their data are not there."""
    missing = [cell for cell in target.cells if cell not in recorded]
    if not missing or target.absent:
        return f"Not run: {target.absent}." if missing else ""
    if quick:
        return f"Not run yet: {', '.join(f'`{cell}`' for cell in missing)}."
    prices = {price: [f"`{cell}`" for cell in missing if minutes_of(cell) == price] for price in
              sorted({minutes_of(cell) for cell in missing})}
    each = [f"{', '.join(cells)} (about {price:g} minutes a run)" for price, cells in prices.items()]
    listed = "\n".join(f"- {line}" for line in each)
    return f"Not run yet, in minutes of {CORE}:\n\n{listed}"


def ablation_table(recorded: Recorded) -> str:
    """The paper's four numbers, ours, and ours with early stopping where nothing is averaged."""
    lines, orders = [], []
    for row in ablation_rows(recorded):
        digits = DIGITS[row["metric"]]
        gaps = [None if ours is None else f"{ours.mean - printed:+.{digits}f}"
                for ours, printed in zip(row["ours"], row["paper"], strict=True)]
        runs = " and ".join(map(str, dict.fromkeys(row["runs"])))
        lines += [
            (row["set"], "paper", *(show(value, digits) for value in row["paper"]), ""),
            (row["set"], "ours, last weights", *(show(value, digits) for value in row["ours"]), runs),
            (row["set"], "ours, best sample", *(show(value, digits) for value in row["kept"]), runs),
            (row["set"], "ours, last weights − paper", *(gap or "—" for gap in gaps), ""),
        ]
        means = [number.mean for number in row["kept"] if number]
        orders.append((
            row["set"], ", ".join(ablation_order(row["paper"])),
            ", ".join(ablation_order(means)) if len(means) == len(FOUR_WAYS) else "—",
            *(answer_of(row[key], digits) for key in ("both_to_averaging", "both_to_optimiser")),
        ))
    body = markdown(("set", "", *FOUR_WAYS, "runs"), lines)
    order = markdown(("set", "the paper, best first", "ours (best sample), best first", "both beats averaging only",
                      "both beats the optimiser's best sample"), orders)
    return f"{body}\n\n{ABLATION}\n\n{order}"


def time_table(recorded: Recorded) -> str:
    """Ratios, so that machines need not be compared."""
    lines = [
        (row["stage"], show(row["paper"], 2), show(row["ours"], 2),
         "—" if row["ours"] is None else f"{row['ours'] - row['paper']:+.2f}", f"`{row['by']}`")
        for row in time_rows(recorded)
    ]
    return f"{markdown(('ratio', 'paper', 'ours', 'ours − paper', 'measured by'), lines)}\n\n{TIMES_NOTE}"


def alternatives_table(target: Target, recorded: Recorded) -> str:
    """The same number of batches for every method; those of several runs as mean ± standard
    deviation."""
    lines = [
        (row["method"], f"`{row['cell']}`", str(row["networks"] or "—"), row["precision"] or "—",
         *(show(row[metric], DIGITS.get(metric, 3)) for metric in target.metrics))
        for row in alternative_rows(target, recorded)
    ]
    return markdown(("method", "run", "networks at test time", "precision", *target.metrics), lines)


OTHER_TABLES = {"ablation": ablation_table, "time": time_table}


def body_of(target: Target, recorded: Recorded) -> str:
    if target.name in COMPARED:
        return alternatives_table(target, recorded)
    special = OTHER_TABLES.get(target.name)
    return special(recorded) if special else table_of(target, recorded)


def page(results: Path) -> str:
    """The whole of docs/reproduce.md."""
    parts: list[Any] = ["# The paper's tables and figures, ours beside theirs", "",
                        "Made by `python -m paper tables` from the files in `results/`. " + NOTE, ""]
    for target in TARGETS.values():
        head = [f"## {target.title}", "", f"`python -m paper {target.name}`", ""]
        if target.figure:
            parts += [*head, figure_of(target, results), ""]
            continue
        recorded = load(results, target)
        refuse_quick(recorded, results)
        for text in (body_of(target, recorded), not_run(target, recorded), columns_of(target, recorded),
                     claims_of(target, recorded)):
            head += [text, ""] if text else []
        parts += head
        for title, make in MORE_TABLES.get(target.name, {}).items():
            made = make(target, recorded)
            parts += [f"### {title}", "", made, ""] if made else []
    return "\n".join(parts).rstrip() + "\n"


def refuse_quick(recorded: Recorded, results: Path) -> None:
    for cell, runs in recorded.items():
        if any(run.get("quick") for run in runs):
            raise LangevinError(f"expected measured numbers in {results}, got those of a quick version of {cell}, "
                                f"which mean nothing; name the folder of the recorded results")


def figure_of(target: Target, results: Path) -> str:
    """The picture, if it was drawn, and for Figure 6 the list of what is circled in it."""
    if not is_drawn(target.name, results):
        return "Not drawn yet."
    told = read_result(kept_numbers(target.name, results))
    refuse_quick({target.name: [told]}, results)
    picture = f"![{target.title}](../results/{FOLDER}/{target.name}.png)"
    listed = told.get("sentences", [])
    if not listed:
        return picture
    lines = [(str(s["rank"]), s["text"].replace("|", "\\|"), s["true"], f"{s['true_mean']:.2f} ± {s['true_std']:.2f}",
              s["predicted"], f"{s['predicted_mean']:.2f} ± {s['predicted_std']:.2f}") for s in listed]
    columns = ("", "sentence", "true", "probability", "predicted", "probability")
    samples = f"The least certain by {told['statistic'].replace('_', ' ')} over {told['samples']} samples:"
    return f"{picture}\n\n{samples}\n\n{markdown(columns, lines)}"
