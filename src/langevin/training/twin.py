"""The optimiser twin of a run: the same network, data, rate and steps, without noise and prior."""

from __future__ import annotations

from ..errors import LangevinError
from ..recipe import OPTIMISERS, Recipe
from ..recipe.load import validate
from ..recipe.tables import settings_without_use

TWINS = {"sgld": "sgd", "psgld": "rmsprop", "santa": "rmsprop", "sghmc": "momentum", "sgnht": "momentum"}


def twin_recipe(recipe: Recipe) -> Recipe:
    """The recipe of the twin, which keeps weights as they are, no means of them, and pools
    nothing."""
    sampler = recipe.sampler
    if sampler.name in OPTIMISERS:
        raise LangevinError(f"expected a sampler to compare with its optimiser, got {sampler.name}, which is one; "
                            f"leave --compare out")
    name = "adagrad" if sampler.preconditioner == "adagrad" else TWINS[sampler.name]
    useless = settings_without_use(name)
    values = recipe.model_dump(mode="json", exclude_none=True)
    kept = {key: value for key, value in values["sampler"].items() if key not in useless}
    values["sampler"] = kept | {"name": name}
    values["run"] |= {"sample": "last"}
    values["run"].pop("burn_in_temperature", None)
    values["title"] = f"{recipe.title or recipe.task}, by {name}"
    if "pool" in values["data"]:
        values["data"]["pool"] = "none"
    return validate(values)
