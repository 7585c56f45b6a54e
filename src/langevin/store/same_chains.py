"""Whether runs are chains of one recipe: what may be averaged together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ..errors import LangevinError
from ..recipe import Recipe
from .manifest import Facts


class ChainRun(Protocol):
    """What is compared of a run folder."""

    @property
    def path(self) -> Path: ...

    @property
    def recipe(self) -> Recipe: ...

    @property
    def facts(self) -> Facts: ...


def refuse_different_chains(folders: Sequence[ChainRun]) -> None:
    """Chains are runs of one recipe on the same data: averages over anything else mean nothing."""
    first, facts = folders[0], folders[0].facts
    ours = recipe_but_seed(first.recipe)
    for other in folders[1:]:
        theirs = recipe_but_seed(other.recipe)
        keys = sorted(k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k))
        if keys:
            raise LangevinError(
                f"expected chains of one recipe that differ in their seeds alone, got {keys[0]} = "
                f"{ours.get(keys[0])} in {first.path} and {theirs.get(keys[0])} in {other.path}; "
                f"name runs of one recipe"
            )
        if facts.get("data_sha256") != other.facts.get("data_sha256"):
            raise LangevinError(f"expected chains trained on the same data, {other.path} saw "
                                f"another than {first.path}; name runs of one text")


def recipe_but_seed(recipe: Recipe) -> dict[str, Any]:
    """What a recipe computes, flat and without seed and title."""
    tables = recipe.what_is_computed()
    flat = {f"{name}.{key}": value for name, table in tables.items() if isinstance(table, dict)
            for key, value in table.items()}
    return {"task": recipe.task} | {k: value for k, value in flat.items() if k != "run.seed"}
