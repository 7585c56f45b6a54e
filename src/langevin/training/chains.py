"""Several chains of one recipe in one folder: ordinary runs from different seeds, trained side by
side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from ..errors import LangevinError
from ..recipe import Recipe
from ..store.folder import LOG, RunFolder
from ..store.lock import lock_folder
from ..store.replacement import replacing
from ..tasks import keep_data, open_task
from .budget import fit_recipe
from .engines import Engine
from .jobs import Job, langevin_command, run_side_by_side
from ..process import prepare_device
from .loop import build


def start_chains(recipe: Recipe, out: Path, chains: int, *, cpus: int = 1, overwrite: bool = False) -> RunFolder:
    """A new folder with one run for each chain, none of them begun. Data and device are checked
    here, once.

    Each chain is to run on so many threads, which its recipe remembers.
    """
    if chains < 1:
        raise LangevinError(f"chains must be at least 1, got {chains}")
    recipe = fit_recipe(recipe)
    prepare_device(recipe.run.device, recipe.run.threads)
    task = open_task(recipe)
    recipes = [recipe_of_chain(recipe, number, cpus) for number in range(chains)]
    build(recipes[0], task)
    with replacing(out, recipe) if overwrite else contextlib.nullcontext():
        folder = RunFolder.create(out, recipe, task.vocabulary, task.facts, recipes)
        keep_data(task, folder.path)
        return folder


def recipe_of_chain(recipe: Recipe, number: int, cpus: int = 1) -> Recipe:
    """The same recipe from another seed (start, noise, dropout, order of random batches), on its
    own threads."""
    run = recipe.run.model_copy(update={"seed": recipe.run.seed + number, "threads": cpus})
    return recipe.model_copy(update={"run": run})


def resume_chains(
    folder: RunFolder, at_once: int | None = None, on_look: Callable[[], None] = lambda: None,
    engine: Engine = run_side_by_side, gpus: float | None = None,
) -> list[RunFolder]:
    """Train every chain that is not finished, at most `at_once` at a time (None: as there is room);
    returns those.

    Each goes on from its own checkpoint in a process of its own, which `engine` starts, here or
    elsewhere. When this is interrupted, all save and stop. `gpus` of a cluster are for each chain
    (None: one where its device is one).
    """
    with lock_folder(folder.path):
        unfinished = [chain for chain in folder.chains if not ((now := chain.progress()) and now.finished)]
        for chain in folder.chains:
            if chain not in unfinished:
                chain.store().tell_of_damage()
        engine([job_of_chain(chain, gpus) for chain in unfinished], at_once, on_look)
    return unfinished


def job_of_chain(chain: RunFolder, gpus: float | None) -> Job:
    """What a chain needs is what its recipe says: its threads, and a GPU where it computes on
    one."""
    run = chain.recipe.run
    needed = float(run.device.startswith("cuda")) if gpus is None else gpus
    command = langevin_command("resume", chain.path.resolve(), "--quiet")
    return Job(chain.path.name, command, chain.path.resolve() / LOG, cpus=run.threads or 1, gpus=needed)
