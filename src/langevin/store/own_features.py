"""Features of pictures that lie in the run which computed them, once for all its chains."""

from __future__ import annotations

from pathlib import Path

from ..data.features import ImageFeatures, read_features
from ..errors import LangevinError
from ..files import inside, no_file
from ..recipe import CaptionData, Recipe
from .folder import CHAIN, CHAINS, FEATURES
from .manifest import Facts


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


def read_own_features(folder: Path, facts: Facts) -> ImageFeatures:
    """The features that a run keeps, refused where they are not those it learnt from."""
    features = read_features(inside(folder, FEATURES))
    refuse_changed_features(features, facts)
    return features


def refuse_changed_features(features: ImageFeatures, facts: Facts | None) -> None:
    """By their checksum, where the run noted one."""
    wanted = (facts or {}).get("features_sha256")
    if wanted is not None and features.sha256() != wanted:
        raise LangevinError(
            f"expected the features that this run learnt from in {features.source} (sha256 "
            f"{wanted[:12]}…), they were changed; bring them back, or delete those that the run "
            f"keeps, and they are made of the pictures again"
        )
