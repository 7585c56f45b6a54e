"""Picture files → image features, by a ResNet-50 whose weights the user has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..data.catalogue import DATASETS
from ..data.features import ImageFeatures
from ..data.images import check_preprocess
from ..files import no_file
from .resnet import load_resnet50, picture_features

KNOWN = "resnet50"


def features_of_pictures(
    paths: Sequence[Path], weights: Path | None = None, preprocess: str = "caffe"
) -> ImageFeatures:
    """Features of pictures under the names they were given; without `weights`, by the network among the data sets.

    A model understands only the features it was trained with: `weights` and `preprocess` must be those.
    """
    check_preprocess(preprocess)
    if weights is None:
        known = DATASETS[KNOWN]
        weights = known.folder / known.files["weights"].name
        if no_file(weights):
            known.read("weights")  # says what is wanted and where
    values = picture_features(load_resnet50(weights, preprocess=preprocess), paths)
    return ImageFeatures([str(path) for path in paths], values, "the pictures")
