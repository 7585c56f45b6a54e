"""Several chains of one recipe in one folder: ordinary runs from different seeds, trained side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from ..errors import LangevinError
from ..process import available_cores
from ..recipe import Recipe
from ..store.folder import LOG, RunFolder
from ..store.lock import lock_folder
from ..store.replacement import replacing
from ..tasks import open_task
from .budget import fit_recipe
from .jobs import Job, langevin_command, run_side_by_side
from ..process import prepare_device
from .loop import build


def start_chains(recipe: Recipe, out: Path, chains: int, *, overwrite: bool = False) -> RunFolder:
    """A new folder with one run for each chain, none of them begun. Data and device are checked here, once."""
    if chains < 1:
        raise LangevinError(f"chains must be at least 1, got {chains}")
    recipe = fit_recipe(recipe)
    prepare_device(recipe.run.device, recipe.run.threads)
    task = open_task(recipe)
    recipes = [recipe_of_chain(recipe, number) for number in range(chains)]
    build(recipes[0], task)
    with replacing(out, recipe) if overwrite else contextlib.nullcontext():
        return RunFolder.create(out, recipe, task.vocabulary, task.facts, recipes)


def recipe_of_chain(recipe: Recipe, number: int) -> Recipe:
    """The same recipe from another seed (start, noise, dropout, order of random batches), on one thread."""
    run = recipe.run.model_copy(update={"seed": recipe.run.seed + number, "threads": 1})
    return recipe.model_copy(update={"run": run})


def resume_chains(
    folder: RunFolder, at_once: int | None = None, on_look: Callable[[], None] = lambda: None
) -> list[RunFolder]:
    """Train every chain that is not finished, at most `at_once` at a time (None: one for each core); returns those.

    Each goes on from its own checkpoint in a process of its own. When this is interrupted, all save and stop.
    """
    with lock_folder(folder.path):
        return resume_unfinished(folder, at_once, on_look)


def resume_unfinished(folder: RunFolder, at_once: int | None, on_look: Callable[[], None]) -> list[RunFolder]:
    unfinished = [chain for chain in folder.chains if not ((now := chain.progress()) and now.finished)]
    for chain in folder.chains:
        if chain not in unfinished:
            chain.store().tell_of_damage()
    jobs = [
        Job(chain.path.name, langevin_command("resume", chain.path.resolve(), "--quiet"), chain.path / LOG)
        for chain in unfinished
    ]
    run_side_by_side(jobs, available_cores() if at_once is None else at_once, on_look)
    return unfinished
