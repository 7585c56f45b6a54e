"""Features of pictures that lie in the run which computed them, once for all its chains."""

from __future__ import annotations

from pathlib import Path

from ..files import inside, no_file
from ..recipe import CaptionData, Recipe
from .folder import CHAIN, CHAINS, FEATURES


def with_own_features(recipe: Recipe, folder: Path) -> Recipe:
    """A recipe of pictures with the features that its run keeps, if they are there."""
    data, folder = recipe.data, folder.resolve()
    if not isinstance(data, CaptionData) or data.images is None or data.features is not None:
        return recipe
    is_chain = CHAIN.fullmatch(folder.name) and (folder.parent / CHAINS).is_file()
    path = inside(folder.parent if is_chain else folder, FEATURES)
    if no_file(path):
        return recipe
    return recipe.model_copy(update={"data": data.model_copy(update={"features": str(path)})})
