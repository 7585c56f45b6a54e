"""The posteriors that are served, each with the queues in front of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import LangevinError
from ..models.extractor import Extractor
from ..predict.base import Posterior
from ..predict.captioning import BeamSettings, CaptionPosterior
from ..predict.classification import ClassificationPosterior
from ..predict.language import LanguagePosterior
from ..predict.results import PictureCaptions, Prediction, TextScore
from .generation import Writer
from .limits import Limits
from .metrics import Metrics
from .problems import Problem
from .worker import Batches, Worker

AT_ONCE = 64
"""Requests that one batch answers."""


@dataclass(frozen=True)
class Pictures:
    """Some pictures to describe, all in the same way."""

    features: Any
    search: BeamSettings
    per_sample: int


class Served:
    """One posterior under its name."""

    def __init__(
        self, name: str, posterior: Posterior, worker: Worker, limits: Limits, metrics: Metrics
    ) -> None:
        self.name, self.posterior, self.worker, self.limits = name, posterior, worker, limits
        if isinstance(posterior, ClassificationPosterior):
            self.answers: Batches[list[str], list[Prediction]] = Batches(
                f"{name}/classify", worker, self.classify_all, metrics, AT_ONCE, limits.waiting
            )
        if isinstance(posterior, LanguagePosterior):
            self.writer = Writer(posterior, worker, limits.waiting)

    def about(self) -> dict[str, Any]:
        """What is told of it at /v1/models."""
        posterior, sampler = self.posterior, self.posterior.recipe.sampler
        return {
            "name": self.name,
            "task": posterior.recipe.task,
            "title": posterior.recipe.title,
            "samples": len(posterior),
            "how": posterior.opened.chosen.how,
            "model": repr(posterior),
            "sampler": sampler.name,
            "temperature": sampler.temperature,
            "limits": self.limits.to_dict(),
        }

    def language(self) -> LanguagePosterior:
        if not isinstance(self.posterior, LanguagePosterior):
            raise self.other("a language model", "/classify or /caption")
        return self.posterior

    def classifier(self) -> ClassificationPosterior:
        if not isinstance(self.posterior, ClassificationPosterior):
            raise self.other("a classifier", "another of its paths")
        return self.posterior

    def captioner(self) -> CaptionPosterior:
        if not isinstance(self.posterior, CaptionPosterior):
            raise self.other("a captioner", "another of its paths")
        return self.posterior

    @cached_property
    def extractor(self) -> Extractor | None:
        """What made the features that a captioner learnt from, if that is known and is here."""
        try:
            known = "extractor" in self.posterior.facts
            return self.captioner().extractor if known else None
        except LangevinError:
            return None

    def other(self, expected: str, instead: str) -> Problem:
        return Problem(404, f"{expected} under this path",
                       f"{self.name}, one of {self.posterior.recipe.task}", f"use {instead}")  # fmt: skip

    async def score(self, text: str, adapt: bool) -> TextScore:
        return await self.worker.run(lambda: self.language().score(text, adapt=adapt))

    async def next(self, text: str, top: int) -> list[Any]:
        return await self.worker.run(lambda: list(self.language().next(text, top)))

    async def classify(self, texts: list[str]) -> list[Prediction]:
        self.classifier()
        return await self.answers.ask(texts)

    def classify_all(self, requests: Sequence[list[str]]) -> list[list[Prediction]]:
        """The texts of several requests as one batch, and each its own again."""
        found = self.classifier().predict([text for texts in requests for text in texts])
        answers, at = [], 0
        for texts in requests:
            answers.append(found[at : at + len(texts)])
            at += len(texts)
        return answers

    async def caption(self, pictures: Pictures) -> list[PictureCaptions]:
        captioner = self.captioner()
        return await self.worker.run(
            lambda: captioner.describe(pictures.features, pictures.search, pictures.per_sample)
        )
