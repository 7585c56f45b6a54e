"""temperature = "auto": before the run, the temperature whose averaged samples predict the validation split best.

All candidates share a short optimisation (T = 0) and branch from its checkpoint; each then samples for a while. The
price is SHARED + len(GRID)·BRANCH of the epochs of the run itself, a fifth.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .files import write_atomic
from .recipe import Recipe
from .runfolder import RECIPE, RunFolder
from .tasks import open_task
from .train import Interrupted, Trainer

GRID = (1.0, 0.1, 0.01, 0.001, 0.0)
SHARED, BRANCH = 0.1, 0.02
"""Of the epochs of the run: optimised together, then sampled by each candidate."""
DRAWS = 4
"""Samples that each candidate averages."""


def with_chosen_temperature(
    recipe: Recipe, out: Path, on_step: Callable[[Trainer], None] = lambda _: None
) -> tuple[Recipe, dict[str, Any]]:
    """The recipe with a number for its temperature, and how that was found; other recipes come back as they are.

    The pilots are in OUT.pilot until the choice is made; when interrupted, finished ones are not run again.
    """
    if recipe.sampler.temperature != "auto":
        return recipe, {}
    pilots = out.with_name(f"{out.name}.pilot")
    scores = {str(t): pilot_score(pilot_recipe(recipe, t), pilots, f"T-{t:g}", on_step) for t in GRID}
    best = min(GRID, key=lambda t: scores[str(t)])
    shutil.rmtree(pilots)
    facts = {"chosen": best, "valid_nll": scores, "epochs": recipe.run.epochs * (SHARED + len(GRID) * BRANCH)}
    return with_temperature(recipe, best), {"temperature_choice": facts}


def with_temperature(recipe: Recipe, temperature: float) -> Recipe:
    return recipe.model_copy(update={"sampler": recipe.sampler.model_copy(update={"temperature": temperature})})


def pilot_recipe(recipe: Recipe, temperature: float) -> Recipe:
    """Optimise, then sample at this temperature, with the learning rate that the run has at its start."""
    shared, branch = recipe.run.epochs * SHARED, recipe.run.epochs * BRANCH
    run = recipe.run.model_copy(update={
        "epochs": shared + branch, "burn_in": shared, "sample_every": branch / DRAWS, "burn_in_temperature": 0.0,
        "temperature_ramp": 0.0, "lr_schedule": "constant", "patience": None,
    })
    return with_temperature(recipe, temperature).model_copy(update={"run": run})


def pilot_score(recipe: Recipe, pilots: Path, name: str, on_step: Callable[[Trainer], None]) -> float:
    """Validation nll of the average of one candidate; the shared part is trained once and copied."""
    folder, shared = pilots / name, pilots / "shared"
    if not (folder / RECIPE).is_file():
        if not (shared / "done").is_file():
            train_shared(recipe, shared, on_step)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(shared, folder, ignore=shutil.ignore_patterns(RECIPE, "done"))
        write_atomic(folder / RECIPE, recipe.to_toml().encode())
    trainer = open_trainer(folder)
    if not trainer.finished:
        trainer.run(on_step)
    return float(trainer.history[-1]["average"]["nll"])


def train_shared(recipe: Recipe, folder: Path, on_step: Callable[[Trainer], None]) -> None:
    """Train up to the end of burn-in and leave a checkpoint there."""
    if not (folder / RECIPE).is_file():
        task = open_task(recipe)
        RunFolder.create(folder, recipe, task.vocabulary, task.facts)
    trainer = open_trainer(folder)
    try:
        trainer.run(on_step, lambda: trainer.step >= trainer.pace.burn_in)
    except Interrupted:
        if trainer.step < trainer.pace.burn_in:
            raise
    (folder / "done").touch()


def open_trainer(path: Path) -> Trainer:
    folder = RunFolder(path)
    return Trainer(folder, open_task(folder.recipe, folder.vocabulary, folder.origin))
