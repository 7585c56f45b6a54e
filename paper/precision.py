"""In which precision a run is made."""

from __future__ import annotations

from pathlib import Path

from langevin.errors import LangevinError
from langevin.store.folder import RECIPE, RunFolder

from .numbers import read_result, recorded_files
from .targets import Run

HALF, SINGLE = "bfloat16", "float32"


def precision_of(run: Run, out: Path, results: Path, asked: str | None = None) -> str | None:
    """As asked for, or as it was begun with, or that of the recorded runs of its cell, so that one
    cell is not of two kinds; None: the recipe's."""
    if asked is not None:
        return asked
    if (out / run.name / RECIPE).is_file():
        return RunFolder(out / run.name).recipe.run.precision
    return recorded_precision(run.cell, results)


def recorded_precision(cell: str, results: Path) -> str | None:
    """Of its first recorded run; None if there is none, or none that can be read."""
    for path in recorded_files(cell, results):
        try:
            return str(read_result(path)["recipe"]["run"].get("precision", SINGLE))
        except (LangevinError, KeyError, TypeError, AttributeError):
            return None  # whoever needs its numbers says so
    return None
