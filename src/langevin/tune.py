"""temperature = "auto": before the run, the settings whose averaged samples predict the validation split best.

First the temperature; then, at the best one, a narrower and a wider prior; then, for samplers with a preconditioner and
a temperature above 0, a lower and a higher ceiling of it. All candidates share a short optimisation (T = 0) and branch
from its checkpoint; each then samples for a while. The price is SHARED + BRANCH for each candidate, of the epochs of
the run itself: 0.2 to 0.28.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .files import write_atomic
from .recipe import Recipe
from .runfolder import RECIPE, RunFolder
from .samplers import SAMPLERS
from .samplers.psgld import gain_ceiling
from .tasks import open_task
from .train import Interrupted, Trainer

GRID = (1.0, 0.1, 0.01, 0.001, 0.0)
"""Temperatures."""
FACTORS = (0.1, 10.0)
"""Of the recipe's prior variance and ceiling; the values themselves are tried with the temperatures."""
SHARED, BRANCH = 0.1, 0.02
"""Of the epochs of the run: optimised together, then sampled by each candidate."""
DRAWS = 4
"""Samples that each candidate averages."""


def with_chosen_temperature(
    recipe: Recipe, out: Path, on_step: Callable[[Trainer], None] = lambda _: None
) -> tuple[Recipe, dict[str, Any]]:
    """The recipe with the chosen settings, and how they were found; other recipes come back as they are.

    The pilots are in OUT.pilot until the choice is made; when interrupted, finished ones are not run again.
    """
    if recipe.sampler.temperature != "auto":
        return recipe, {}
    pilots, tried = out.with_name(f"{out.name}.pilot"), dict[str, dict[str, float]]()
    num_data = open_task(recipe).num_data
    best, chosen, lowest = recipe, recipe, float("inf")
    for key in ("temperature", "prior_var", "ceiling"):
        for value in candidates(best, key, num_data):
            changed = with_setting(best, key, value)
            score = pilot_score(pilot_recipe(changed), pilots, f"{key}-{value:g}", on_step)
            tried.setdefault(key, {})[f"{value:g}"] = score
            if score < lowest:
                chosen, lowest = changed, score
        best = chosen
    shutil.rmtree(pilots)
    epochs = recipe.run.epochs * (SHARED + sum(map(len, tried.values())) * BRANCH)
    facts = {"chosen": {key: getattr(best.sampler, key) for key in tried}, "valid_nll": tried, "epochs": epochs}
    return best, {"temperature_choice": facts}


def candidates(recipe: Recipe, key: str, num_data: int) -> Sequence[float]:
    """Values to try for one setting: none where the sampler has no prior, no ceiling or no noise to limit."""
    name, settings = recipe.sampler.resolved(num_data)
    if key == "temperature":
        return GRID
    if key == "prior_var":
        return [factor * settings["prior_var"] for factor in FACTORS] if "prior_var" in settings else []
    if "ceiling" not in inspect.signature(SAMPLERS[name]).parameters or recipe.sampler.temperature == 0:
        return []
    own = gain_ceiling({"ceiling": None, "prior_var": None, "num_data": num_data} | settings)
    return [factor * own for factor in FACTORS]


def with_setting(recipe: Recipe, key: str, value: float) -> Recipe:
    return recipe.model_copy(update={"sampler": recipe.sampler.model_copy(update={key: value})})


def pilot_recipe(recipe: Recipe) -> Recipe:
    """Optimise, then sample, with the learning rate that the run has at its start."""
    shared, branch = recipe.run.epochs * SHARED, recipe.run.epochs * BRANCH
    run = recipe.run.model_copy(update={
        "epochs": shared + branch, "burn_in": shared, "sample_every": branch / DRAWS, "burn_in_temperature": 0.0,
        "temperature_ramp": 0.0, "lr_schedule": "constant", "patience": None,
    })
    return recipe.model_copy(update={"run": run})


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
    for group in trainer.sampler.param_groups:  # the shared checkpoint has those of the first candidate
        group |= {key: value for key, value in recipe.sampler.resolved(1)[1].items() if key in ("prior_var", "ceiling")}
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
