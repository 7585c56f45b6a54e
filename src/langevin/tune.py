"""temperature = "auto": before the run, the settings whose averaged samples predict the validation split best.

First the temperature; then, at the best one, a narrower and a wider prior; then, for samplers with a preconditioner, a
lower and a higher ceiling of it. All candidates share a short optimisation (T = 0) and branch from its checkpoint; each
then samples for a while. The price is SHARED + BRANCH for each candidate, of the epochs of the run itself: 0.2 to 0.28,
and a validation for each of the DRAWS.

What keeps a model from overfitting (noise, a prior) pays off late and what slows it down (a ceiling) costs late, so
that small differences early in a run mislead: temperatures within LEVEL of the best are as good as it, and the recipe's
own prior and ceiling stay unless another is better by CLEAR.
"""

from __future__ import annotations

import inspect
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .errors import Diverged, LangevinError
from .files import write_atomic
from .recipe import Recipe
from .samplers import SAMPLERS
from .samplers.psgld import gain_ceiling
from .store.folder import RECIPE, RunFolder
from .tasks import open_task
from .training.loop import Interrupted, Trainer

CHOSEN = ("temperature", "prior_var", "ceiling")
"""One after the other."""
GRID = (1.0, 0.1, 0.01, 0.001, 0.0)
"""Temperatures."""
FACTORS = (0.1, 10.0)
"""Of the recipe's prior variance and ceiling; the values themselves are tried with the temperatures."""
SHARED, BRANCH = 0.1, 0.02
"""Of the epochs of the run: optimised together, then sampled by each candidate."""
DRAWS = 4
"""Samples that each candidate averages."""
LEVEL, CLEAR = 0.005, 0.02
"""Relative differences of validation nll; how they were found is in docs/log.md."""

Train = Callable[[Trainer, Callable[[], bool]], None]
"""Trains to the end, or until the second says so (then raising Interrupted with a checkpoint)."""


def with_chosen_temperature(
    recipe: Recipe, out: Path, train: Train = lambda trainer, until: trainer.run(stop=until)
) -> tuple[Recipe, dict[str, Any]]:
    """The recipe with the chosen settings, and how they were found; other recipes come back as they are.

    The pilots are in OUT.pilot until the choice is made; when interrupted, finished ones are not run again.
    """
    if recipe.sampler.temperature != "auto":
        return recipe, {}
    pilots, tried = out.with_name(f"{out.name}.pilot"), dict[str, dict[str, float]]()
    forget_others(pilots, recipe)
    task = open_task(recipe)
    best, own = recipe, math.inf
    for key in CHOSEN:
        scores = dict[float, float]()
        for value in candidates(best, key, task.num_data):
            pilot = pilot_recipe(with_setting(best, key, value), task.batches_per_epoch)
            scores[value] = pilot_score(pilot, pilots, f"{key}-{value:g}", train)
        if scores:
            tried[key] = {f"{value:g}": score for value, score in scores.items()}
        if (taken := preferred(key, scores, own)) is not None:
            best, own = with_setting(best, key, taken), scores[taken]
        if own == math.inf:
            raise LangevinError("expected a temperature that trains, the loss of every one diverged; lower lr")
    shutil.rmtree(pilots)
    shared, branch = lengths(recipe, task.batches_per_epoch)
    steps = shared + branch * sum(map(len, tried.values()))
    facts = {"chosen": {key: getattr(best.sampler, key) for key in tried}, "valid_nll": tried,
             "epochs": steps / task.batches_per_epoch}
    return best, {"temperature_choice": facts}


def forget_others(pilots: Path, recipe: Recipe) -> None:
    """Pilots that were left by another recipe are no use to this one; what else is there is not ours to remove."""
    asked = pilots / "asked.toml"
    if asked.is_file() and asked.read_text("utf-8") == recipe.to_toml():
        return
    if pilots.exists() and not asked.is_file():
        raise LangevinError(f"expected nothing at {pilots}, where short runs try the temperatures, found something "
                            f"else; move it away or choose another folder for the run")
    shutil.rmtree(pilots, ignore_errors=True)
    write_atomic(asked, recipe.to_toml().encode())


def candidates(recipe: Recipe, key: str, num_data: int) -> Sequence[float]:
    """Values to try for one setting: none where the sampler has no prior or no ceiling."""
    name, settings = recipe.sampler.resolved(num_data)
    if key == "temperature":
        return GRID
    if key == "prior_var":
        return [factor * settings["prior_var"] for factor in FACTORS] if "prior_var" in settings else []
    if "ceiling" not in inspect.signature(SAMPLERS[name]).parameters:
        return []
    own = gain_ceiling({"ceiling": None, "prior_var": None, "num_data": num_data} | settings)
    return [factor * own for factor in FACTORS] if math.isfinite(own) else []


def preferred(key: str, scores: dict[float, float], own: float) -> float | None:
    """The value to take, None for the one that the recipe has, whose score is `own`.

    Of temperatures that are level with the best, the warmest; another prior or ceiling only if it is clearly better.
    """
    lowest = min(scores.values(), default=math.inf)
    if key == "temperature":
        return max(value for value, score in scores.items() if score <= lowest * (1 + LEVEL))
    return min(scores, key=lambda value: scores[value]) if lowest < own * (1 - CLEAR) else None


def with_setting(recipe: Recipe, key: str, value: float) -> Recipe:
    return recipe.model_copy(update={"sampler": recipe.sampler.model_copy(update={key: value})})


def lengths(recipe: Recipe, batches: int) -> tuple[int, int]:
    """Steps of the shared part and of each candidate, the latter a multiple of DRAWS."""
    total = recipe.run.epochs * batches
    return max(1, round(total * SHARED)), DRAWS * max(1, round(total * BRANCH / DRAWS))


def pilot_recipe(recipe: Recipe, batches: int) -> Recipe:
    """Optimise, then sample, with the learning rate that the run has at its start."""
    shared, branch = lengths(recipe, batches)
    run = recipe.run.model_copy(update={
        "epochs": (shared + branch) / batches, "burn_in": shared / batches, "sample_every": branch / DRAWS / batches,
        "burn_in_temperature": 0.0, "temperature_ramp": 0.0, "lr_schedule": "constant", "patience": None,
    })
    return recipe.model_copy(update={"run": run})


def pilot_score(recipe: Recipe, pilots: Path, name: str, train: Train) -> float:
    """Validation nll of the average of one candidate; the shared part is trained once and copied."""
    folder, shared = pilots / name, pilots / "shared"
    if not (folder / RECIPE).is_file():
        if not (shared / "done").is_file():
            train_shared(recipe, shared, train)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(shared, folder, ignore=shutil.ignore_patterns(RECIPE, "done"))
        write_atomic(folder / RECIPE, recipe.to_toml().encode())
    trainer = open_trainer(folder)
    for group in trainer.sampler.param_groups:  # the shared checkpoint has those of the first candidate
        group |= {key: value for key, value in recipe.sampler.resolved(1)[1].items() if key in ("prior_var", "ceiling")}
    try:
        if not trainer.finished:
            train(trainer, lambda: False)
    except Diverged:
        return math.inf
    return float(trainer.history[-1]["average"]["nll"])


def train_shared(recipe: Recipe, folder: Path, train: Train) -> None:
    """Train up to the end of burn-in and leave a checkpoint there; few validations on the way, nobody reads them."""
    if not (folder / RECIPE).is_file():
        task = open_task(recipe)
        rarely = recipe.run.model_copy(update={"sample_every": recipe.run.epochs - recipe.run.burn_in})
        RunFolder.create(folder, recipe.model_copy(update={"run": rarely}), task.vocabulary, task.facts)
    trainer = open_trainer(folder)
    try:
        train(trainer, lambda: trainer.step >= trainer.pace.burn_in)
    except Interrupted:
        if trainer.step < trainer.pace.burn_in:
            raise
    (folder / "done").touch()


def open_trainer(path: Path) -> Trainer:
    folder = RunFolder(path)
    return Trainer(folder, open_task(folder.recipe, folder.vocabulary, folder.origin))
