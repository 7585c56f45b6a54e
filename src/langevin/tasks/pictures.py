"""Captions of a recipe with the features of their images, read from a file or made of pictures."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ..data.caption_splits import Shares
from ..data.captions import Captions, open_captions, open_features
from ..data.features import ImageFeatures
from ..data.picture_folder import PictureFolder, find_pictures
from ..errors import LangevinError
from ..models.extractor import open_extractor
from ..models.pictures import features_of_pictures, name_some
from ..process import SILENT, Progress
from ..recipe import CaptionData

log = logging.getLogger("langevin")


def open_pictures(
    data: CaptionData, facts: dict[str, Any] | None = None, progress: Progress = SILENT, *,
    say: bool = False,
) -> tuple[Captions, ImageFeatures]:  # fmt: skip
    """Both; features of pictures come from the cache where they were computed before.

    `facts` are those of a run that is opened again: its extractor is the one to use. `say` what is
    left out.
    """
    shares = Shares(data.valid_share, data.test_share)
    captions = open_captions(data.corpus, shares, allow_bare=data.allow_missing)
    if data.images is None or data.features is not None:
        return captions, open_features(data.corpus, data.features)
    found = pictures_of(data, captions)
    extractor = open_extractor(data.extractor, data.preprocess, (facts or {}).get("extractor"))
    features, damaged = features_of_pictures(
        found.paths, extractor, skip_damaged=data.allow_missing, progress=progress
    )
    reasons = {
        "no words in their captions": captions.bare, "no picture": found.missing,
        "a damaged picture": damaged, "pictures without captions": found.unnamed,
    }  # fmt: skip
    for reason, names in reasons.items() if say else ():
        if names:
            log.warning("left out, %s: %d (%s)", reason, len(names), name_some(names))
    return captions, features


def pictures_of(data: CaptionData, captions: Captions) -> PictureFolder:
    """A picture for every image of the splits, refused where one is missing or has no captions."""
    assert data.images is not None
    names = [name for names in captions.splits.values() for name in names]
    found = find_pictures(Path(data.images), names, captions.texts)
    if not found.paths:
        raise LangevinError(f"expected pictures of the images of {data.corpus} in {data.images}: "
                            f"{found.problem}; pass the folder that has them by --images")
    if found.problem and not data.allow_missing:
        raise LangevinError(f"expected a picture in {data.images} for each image of {data.corpus} "
                            f"and captions for each picture: {found.problem}; mend that, or leave "
                            f"them out by --skip-damaged")
    return found
