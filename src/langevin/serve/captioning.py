"""Captioners that are served: pictures that are to be described alike are one batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from ..data.features import ImageFeatures
from ..errors import LangevinError
from ..models.extractor import Extractor
from ..predict.captioning import BeamSettings, CaptionPosterior
from ..process import SILENT, Progress
from .answers import encode
from .models import Served
from .worker import Batches, Worker

PICTURES = 16
"""That one batch answers."""


@dataclass(frozen=True)
class Picture:
    """The features of a picture, and how to describe it."""

    features: ImageFeatures
    search: BeamSettings
    per_sample: int


class ServedCaptioner(Served[CaptionPosterior]):
    """A captioner: pictures that are to be described alike are one batch."""

    noun = "a captioner"
    extractor: Extractor | None = None
    """What makes features of pictures."""

    def __init__(
        self, name: str, posterior: CaptionPosterior, worker: Worker, progress: Progress = SILENT
    ) -> None:
        super().__init__(name, posterior, worker)
        self.answers = Batches[Picture](f"{name}/caption", worker, self.caption_all, PICTURES)

    @property
    def labels(self) -> tuple[str, ...]:
        several = self.posterior.has_chains
        return tuple(f"chain {draw.chain}, step {draw.step}" if several else f"step {draw.step}"
                     for draw in self.posterior.draws)  # fmt: skip

    @property
    def pictures(self) -> bool:
        return self.extractor is not None

    def open_extractor(self, name: str | None, preprocess: str | None) -> None:
        """The one that is named; untold, that of the training or the usual one, if it fits."""
        if name is not None or preprocess is not None:
            self.extractor = self.posterior.open_extractor(name, preprocess)
        else:
            with suppress(LangevinError):
                self.extractor = self.posterior.extractor

    def try_out(self) -> str:
        self.posterior.caption(torch.zeros(self.posterior.width))
        return "to describe a picture by its features, beam 5"

    def caption_all(self, pictures: Sequence[Picture]) -> list[bytes]:
        """Those that are searched for in the same way together."""
        answers = dict[int, bytes]()
        for key in {(picture.search, picture.per_sample) for picture in pictures}:
            own = [at for at, one in enumerate(pictures) if (one.search, one.per_sample) == key]
            values = torch.cat([pictures[at].features.values for at in own])
            together = ImageFeatures([str(at) for at in own], values, "the request")
            found = self.posterior.describe(together, *key)
            named = (replace(one, image="the request") for one in found)
            answers |= zip(own, map(encode, named), strict=True)
        return [answers[at] for at in range(len(pictures))]
