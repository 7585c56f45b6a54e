"""The paper's claim, one line for each sampler and twin that was run, and how often it holds; never
typed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from .numbers import better, load
from .layout import DIGITS, markdown, show
from .pages import answer_of, refuse_quick
from .scores import METRICS, between_marks
from .tables import claims, column_rows
from .targets import TARGETS, Target

ASKED = {
    "beats_best": "averaged, beats one network of its twin (the paper's claim)",
    "chosen_beats_best": "chosen samples averaged, beat it",
    "beats_averaged": "beats its twin averaged",
    "beats_chosen": "chosen samples beat the twin's chosen",
}
"""The columns of answers."""


def scoreboard(results: Path) -> str:
    """The table and its sum."""
    rows = [row for target in TARGETS.values() if target.paper for row in rows_of(target, results)]
    lines = [
        (f"`{row['sampler']}`", ", ".join(f"{t:.3g}" for t in row["temperatures"]), row["metric"],
         "yes" if in_paper(row) else "no",
         *(answer_of(row[asked], DIGITS.get(row["metric"], 3)) for asked in ASKED),
         *(show(row[key], DIGITS.get(row["metric"], 3)) for key in ("best_of_paper", "best")),
         "yes" if row["better"] else "**no**")
        for row in rows
    ]
    head = ("sampler", "T", "metric", "better than its twin in the paper", *ASKED.values(), "the paper's best",
            "our best of the column", "better")
    return f"{markdown(head, lines)}\n\n{in_sum(rows)}"


def refresh_findings(findings: str, results: Path, where: Path = Path("findings.md")) -> str:
    """The page with its table made anew."""
    return between_marks(findings, scoreboard(results), where)


def rows_of(target: Target, results: Path) -> list[dict[str, Any]]:
    """Of the paper's pairs of twins; where a sampler was also run below the printed temperature,
    that one."""
    recorded = load(results, target)
    refuse_quick(recorded, results)
    columns = {(row["column"], row["metric"]): row for row in column_rows(target, recorded)}
    return [
        claim | {key: column[key] for key in ("column", "best_of_paper", "best", "better")}
        | {"temperatures": sorted({run["temperature"] for run in recorded[claim["sampler"]]})}
        for claim in claims(target, recorded)
        if claim["metric"] in METRICS and claim["metric"] in target.metrics
        and f"{claim['sampler']}-tempered" not in recorded
        for (name, metric), column in columns.items()
        if metric == claim["metric"] and claim["sampler"].startswith(f"{name}-")
    ]


def in_paper(row: dict[str, Any]) -> bool:
    """Whether the sampler is better than its twin by the paper's own two numbers; it has one
    temperature only."""
    numbers = {cell: values for target in TARGETS.values() for cell, values in target.paper.items()}
    sampler, twin = (numbers[cell][row["metric"]] for cell in
                     (row["sampler"].removesuffix("-tempered"), row["optimiser"]))
    return better(row["metric"], sampler, twin)


def in_sum(rows: list[dict[str, Any]]) -> str:
    """How often each answer was given, and in how many columns our best is better than the
    paper's."""
    told = [f"{words}: {counted([row[asked] for row in rows if row[asked]])}" for asked, words in ASKED.items()]
    columns = {(row["column"], row["metric"]): row["better"] for row in rows}
    told.append(f"our best number is better than the paper's in {sum(columns.values())} of {len(columns)} columns")
    return "In sum:\n\n" + "\n".join(f"- {line}" for line in told)


def counted(answers: list[dict[str, Any]]) -> str:
    """Answers of a test, and apart from them those of single runs, which have no error bar."""
    words = []
    for kind, some in {"tested": [each for each in answers if each["std"] is not None],
                       "single runs": [each for each in answers if each["std"] is None]}.items():
        counts = Counter(each["answer"] for each in some)
        given = ", ".join(f"{counts[answer]} {answer}" for answer in ("yes", "level", "no") if counts[answer])
        words += [f"{kind} {given}"] if some else []
    return "; ".join(words)
