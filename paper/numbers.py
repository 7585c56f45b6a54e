"""Recorded results → numbers: the runs of a cell, and what was measured of them, with mean and
spread."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langevin.errors import LangevinError

from .targets import Target

FORMAT = 2
"""Of the records that are written now: errors are fractions, times seconds. The first had per cent
and minutes."""

Recorded = dict[str, list[dict[str, Any]]]
"""The recorded runs of each cell: seeds or folds."""
HIGHER_IS_BETTER = ("bleu", "meteor", "cider", "rouge")
ANEW = "remove the file and run the target again"
OF_A_RUN = ("temperature", "recipe", "samples", "minutes", "chosen", "valid", "test")
"""What the tables read of the file of a run."""


@dataclass(frozen=True)
class Number:
    """Mean and standard deviation (n − 1) over the runs of one cell."""

    mean: float
    std: float | None
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Number | None:
        if not values:
            return None
        return cls(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))

    def text(self, digits: int) -> str:
        return f"{self.mean:.{digits}f}" + ("" if self.std is None else f" ± {self.std:.{digits}f}")


def recorded_files(cell: str, folder: Path) -> list[Path]:
    """All files `cell.json`, `cell.seed3.json`, `cell.fold0.json`."""
    return sorted(path for name in (cell, f"{cell}.seed*", f"{cell}.fold*") for path in folder.glob(f"{name}.json"))


def recorded_runs(cell: str, folder: Path, needed: Sequence[str] = OF_A_RUN) -> list[dict[str, Any]]:
    """What stands in them, each with the `key` of its run."""
    return [{"key": path.stem.removeprefix(cell), **read_result(path, needed)} for path in recorded_files(cell, folder)]


def read_result(path: Path, needed: Sequence[str] = ()) -> dict[str, Any]:
    """One file of results, refused where it is none or lacks what is needed of it."""
    try:
        told: Any = json.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise LangevinError(f"expected recorded numbers in {path}, which cannot be read ({problem.strerror}); "
                            f"{ANEW}") from None
    except ValueError as problem:
        raise LangevinError(f"expected recorded numbers in {path}, got no whole JSON ({problem}); {ANEW}") from None
    if not isinstance(told, dict) or not told:  # benchmarks and runs have few keys in common
        raise LangevinError(f"expected recorded numbers in {path}, got {str(told)[:40]!r}; {ANEW}")
    if told.get("format") == FORMAT and "chosen" in told:
        told = in_units_of_tables(told)
    if lacking := [key for key in needed if key not in told]:
        raise LangevinError(f"expected recorded numbers in {path}, it lacks {', '.join(lacking)}; {ANEW}")
    result: dict[str, Any] = told
    return result


def in_units_of_tables(record: dict[str, Any]) -> dict[str, Any]:
    """A record under the names and in the units of the first format: per cent and minutes, as the
    tables print them."""
    chosen, factor = record["chosen"], 100 if record["chosen"]["score"] == "error" else 1
    splits = {}
    for split in ("valid", "test"):
        told = {"single" if name == "last" else name: value for name, value in record[split].items()}
        splits[split] = {
            **{name: in_per_cent(value) if isinstance(value, dict) else value for name, value in told.items()},
            "each": [in_per_cent(one) for one in told["each"]],
            "curve": {how: [factor * value for value in line] for how, line in told["curve"].items()},
        }
    scored = {split: factor * chosen[split] for split in ("valid", "test")}
    return record | splits | {"chosen": chosen | scored, "minutes": record["seconds"] / 60}


def in_per_cent(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {name: 100 * value if name == "error" else value for name, value in scores.items()}


def load(folder: Path, target: Target) -> Recorded:
    """The recorded runs of its cells, what its benchmarks wrote, and what is shown beside."""
    found = {cell: recorded_runs(cell, folder) for cell in target.cells}
    found |= {name: recorded_runs(name, folder, (benchmark.ratio,)) for name, benchmark in target.benchmarks.items()}
    found |= {name: recorded_runs(name, folder, ()) for name in target.beside}
    return {cell: runs for cell, runs in found.items() if runs}


def ours(runs: Sequence[Mapping[str, Any]], which: str, metric: str) -> Number | None:
    """The runs of a cell together."""
    values = [value_of(run, which, metric) for run in runs]
    return Number.of([value for value in values if value is not None])


def value_of(run: Mapping[str, Any], which: str, metric: str) -> float | None:
    """Of one run, as recorded: `single` (the last sample), `averaged`, `weight_averaged`,
    `mc_dropout`.

    Or by preference of the validation split: `best`, a sample, and `chosen`, a collection. `valid`
    is not of the test but of the validation split, averaged.
    """
    if which == "chosen":
        return chosen(run, metric)
    if which == "best":
        return best_single(run, metric)
    split, which = ("valid", "averaged") if which == "valid" else ("test", which)
    value: float | None = run[split].get(which, {}).get(metric)
    return value


def chosen(run: Mapping[str, Any], metric: str) -> float | None:
    """A test number of the collection that validation chose: what it was chosen by, and of captions
    their metrics."""
    value, score = run["chosen"]["test"], score_of(run)
    if metric == "perplexity" and score == "nll":
        return math.exp(value)
    known: float | None = value if metric == score else run["chosen"].get("metrics", {}).get(metric)
    return known


def score_of(run: Mapping[str, Any]) -> str:
    """What collections are chosen by: the error of classifiers, the nll of all others."""
    return "error" if "error" in run["test"]["averaged"] else "nll"


def best_single(run: Mapping[str, Any], metric: str) -> float | None:
    """The test number of the one sample that validation prefers: what early stopping would have
    kept.

    The error of the one of the least error; all else of that of the least nll, which is the rival
    to beat in nll and calibration: the weights of the least error may long have been too sure of
    themselves.
    """
    scores = [each["error" if metric == "error" else "nll"] for each in run["valid"]["each"]]
    value: float | None = run["test"]["each"][scores.index(min(scores))].get(metric)
    return value


def better(metric: str, one: float, other: float) -> bool:
    return one > other if metric.startswith(HIGHER_IS_BETTER) else one < other
