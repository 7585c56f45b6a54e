"""In which precision a run is made, and about how long it then takes on this machine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from langevin.errors import LangevinError
from langevin.store.folder import RECIPE, RunFolder
from langevin.store.processor import bfloat16_is_slow, slowness

from .numbers import read_result, recorded_files
from .targets import Run, minutes_of

HALF, SINGLE = "bfloat16", "float32"
log = logging.getLogger("langevin")


def precision_of(run: Run, out: Path, results: Path, asked: str | None = None) -> str | None:
    """As asked for, or as it was begun with, or that of the recorded runs of its cell, so that one cell is not of two
    kinds (unless that is slow here); None: the recipe's."""
    if asked is not None:
        return asked
    if (out / run.name / RECIPE).is_file():
        return RunFolder(out / run.name).recipe.run.precision
    recorded = recorded_precision(run.cell, results)
    return SINGLE if recorded == HALF and bfloat16_is_slow() else recorded


def recorded_precision(cell: str, results: Path) -> str | None:
    """Of its first recorded run; None if there is none, or none that can be read."""
    for path in recorded_files(cell, results):
        try:
            return str(read_result(path)["recipe"]["run"].get("precision", SINGLE))
        except (LangevinError, KeyError, TypeError, AttributeError):
            return None  # whoever needs its numbers says so
    return None


def minutes_here(cell: str, results: Path) -> float:
    """Of one run on one core of this machine, in the precision that a new run would have."""
    fast = recorded_precision(cell, results) == HALF and not bfloat16_is_slow()
    return minutes_of(cell) * slowness(HALF if fast else SINGLE)


def tell_precisions(runs: Mapping[str, str | None], begun: set[str], recorded: Mapping[str, str | None]) -> None:
    """Say which runs are of another precision than those recorded, and which go on although they are slow here."""
    if not bfloat16_is_slow():
        return
    slow = [name for name, precision in runs.items() if precision == HALF and name in begun]
    changed = [name for name, precision in runs.items() if precision == SINGLE and recorded[name] == HALF]
    if changed:
        log.info("recorded runs are of bfloat16, which is slow on this processor: %d new in float32", len(changed))
    if slow:
        log.warning("%d runs go on in bfloat16, as they were begun, which is slow on this processor; move their "
                    "folders away to begin anew in float32", len(slow))
