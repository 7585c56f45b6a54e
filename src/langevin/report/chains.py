"""Several chains on the screen: what came of each."""

from __future__ import annotations

from rich.console import Group

from ..store.folder import RunFolder
from .tables import cell, heading
from .terminal import table


def chains_table(folder: RunFolder) -> Group:
    """One row for each chain: seed, state, steps, samples, validation scores of the last sample and
    of its average."""
    rows, score = [], folder.recipe.data.score
    for chain in folder.chains:
        progress = chain.progress()
        history = progress.history if progress else ()
        averages = [line.average for line in history if line.average]
        rows.append((
            chain.path.name, str(chain.recipe.run.seed),
            "finished" if progress and progress.finished else "can be resumed",
            f"{progress.step} of {progress.total}" if progress else "0 of ?", str(len(chain.store())),
            cell(history[-1].valid, score) if history else "",
            cell(averages[-1], score) if averages else "",
        ))
    columns = ("chain", "seed", "state", "steps", "samples", "last sample", "its average")
    return table(f"{folder.path}: {len(rows)} chains, validation {heading(score)}", columns, rows)
