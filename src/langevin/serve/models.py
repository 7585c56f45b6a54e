"""The posteriors that are served, each with the queues in front of it."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from ..data.features import ImageFeatures
from ..errors import LangevinError
from ..models.extractor import Extractor
from ..predict.base import Posterior
from ..predict.captioning import BeamSettings, CaptionPosterior
from ..predict.classification import ClassificationPosterior
from ..predict.encoded import EncodedTexts
from ..predict.foreign import surprise_of
from ..predict.language import LanguagePosterior
from ..predict.linear_pool import average_parts
from ..predict.prediction_sets import name_sets
from ..predict.results import Prediction
from ..process import SILENT, Progress
from ..store.linear_members import RECURRENT
from ..store.members import NETWORK
from ..tasks.members import averaged_draws, pool_members
from .answers import (
    AnswerCost,
    ClassAnswer,
    ClassifyAnswer,
    ModelAbout,
    NextAnswer,
    ScoreAnswer,
    SetPromise,
    encode,
)
from .generation import Writer
from .problems import Problem
from .promises import Promises
from .requests import ClassifyRequest, NextRequest, ScoreRequest
from .worker import Batches, Worker

WARM, TIMED = 2, 5
"""Answers before anybody asks: some to warm up, then some to tell what one costs."""
TEXTS, PICTURES = 1024, 16
"""Texts and pictures that one batch answers; a request that brings more is a batch by itself."""
USUAL = "What is the name of the longest river in the world ?"

P = TypeVar("P", bound=Posterior)
S = TypeVar("S", bound="Served[Any]")


class Served(ABC, Generic[P]):
    """One posterior under its name."""

    noun = "a model"

    def __init__(
        self, name: str, posterior: P, worker: Worker, progress: Progress = SILENT
    ) -> None:
        self.name, self.posterior, self.worker = name, posterior, worker
        posterior.ensemble  # noqa: B018  # reads the samples now, not at the first request

    @abstractmethod
    def try_out(self) -> str:
        """Answer something usual; says in words what that was."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What each part of an answer is."""
        return ()

    @property
    def members(self) -> dict[str, float]:
        """Of a pool: the weights of its members."""
        return {}

    @property
    def level(self) -> str | None:
        """What the tokens of a text are."""
        return None

    @property
    def pictures(self) -> bool:
        """Whether pictures can be sent."""
        return False

    @cached_property
    def cost(self) -> AnswerCost:
        """Measured once, when the model is loaded."""
        spent = list[float]()
        for _ in range(WARM + TIMED):
            started = time.perf_counter()
            of = self.try_out()
            spent.append(time.perf_counter() - started)
        return AnswerCost(of, median(spent[WARM:]), self.posterior.bytes)

    @property
    def about(self) -> ModelAbout:
        """What is told of it at /v1/models."""
        recipe, chosen = self.posterior.recipe, self.posterior.opened.chosen
        shape, heat = recipe.model, recipe.sampler.temperature
        sides = "bidirectional " if getattr(shape, "bidirectional", False) else ""
        return ModelAbout(
            name=self.name, task=recipe.task, title=recipe.title, samples=len(self.posterior),
            how=chosen.how, why=chosen.why, labels=self.labels, members=self.members,
            network=f"{sides}{shape.layers}×{shape.hidden} {shape.cell.upper()}",
            parameters=sum(weight.numel() for weight in self.posterior.model.parameters()),
            sampler=recipe.sampler.name, temperature=None if isinstance(heat, str) else heat,
            recipe=without_folders(recipe.to_toml()), level=self.level, pictures=self.pictures, cost=self.cost,
            limits=self.worker.limits,
        )  # fmt: skip


def without_folders(recipe: str) -> str:
    """Files by their names alone: where they lie on this machine is nobody's business."""
    return re.sub(r'^(?!title)(\w+ = )"[^"]*/([^"/]+)"$', r'\1"\2"', recipe, flags=re.MULTILINE)


class ServedLanguage(Served[LanguagePosterior]):
    """A language model: texts are scored one after the other, and written side by side."""

    noun = "a language model"

    def __init__(
        self, name: str, posterior: LanguagePosterior, worker: Worker, progress: Progress = SILENT
    ) -> None:
        super().__init__(name, posterior, worker)
        self.scores = Batches[ScoreRequest](f"{name}/score", worker, self.score_all)
        self.nexts = Batches[NextRequest](f"{name}/next", worker, self.next_all)
        self.writer = Writer(name, posterior, worker)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.posterior.labels()

    @property
    def level(self) -> str | None:
        return self.posterior.vocabulary.level

    @property
    def members(self) -> dict[str, float]:
        pool = self.posterior.pool()
        return dict(zip(pool.names, pool.shares, strict=True)) if pool.names != [NETWORK] else {}

    def try_out(self) -> str:
        tokens = self.posterior.score(USUAL).tokens
        return f"to score a text of {len(tokens)} tokens"

    def score_all(self, requests: Sequence[ScoreRequest]) -> list[bytes]:
        answers = []
        for asked in requests:
            found = self.posterior.score(asked.text, adapt=asked.adapt)
            told = surprise_of(self.posterior, found.nll)
            answers.append(encode(ScoreAnswer(**vars(found), surprise=told)))
        return answers

    def next_all(self, requests: Sequence[NextRequest]) -> list[bytes]:
        return [encode(NextAnswer(tuple(self.posterior.next(asked.text, asked.top, asked.tokens))))
                for asked in requests]  # fmt: skip


class ServedClassifier(Served[ClassificationPosterior]):
    """A classifier: the texts of all that ask are one batch."""

    noun = "a classifier"

    def __init__(
        self, name: str, posterior: ClassificationPosterior, worker: Worker,
        progress: Progress = SILENT,
    ) -> None:  # fmt: skip
        super().__init__(name, posterior, worker)
        self.promises = Promises.of(posterior, progress)
        self.answers = Batches[ClassifyRequest](
            f"{name}/classify", worker, self.classify_all, TEXTS, lambda asked: len(asked.all_texts)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.posterior.labels)

    @property
    def members(self) -> dict[str, float]:
        found = self.posterior.members
        return dict(found.record.weights) if found else {}

    def try_out(self) -> str:
        self.posterior.predict(USUAL)
        return "to classify a sentence of 11 words"

    def classify_all(self, requests: Sequence[ClassifyRequest]) -> list[bytes]:
        """The texts of several requests as one batch, and each its own again."""
        found = iter(self.posterior.predict([t for asked in requests for t in asked.all_texts]))
        return [encode(self.answer(asked, [next(found) for _ in asked.all_texts]))
                for asked in requests]  # fmt: skip

    def answer(self, asked: ClassifyRequest, found: list[Prediction]) -> ClassifyAnswer:
        """What was predicted, with the sets, draws and members that this request asks for."""
        answers, sets = [ClassAnswer(**vars(one)) for one in found], None
        if asked.alpha is not None:
            rule = self.promises.sets(asked.alpha)
            inside = rule.sets(torch.tensor([list(one.p.values()) for one in found]))
            named = name_sets(inside, self.posterior.labels)
            answers = [replace(one, labels=own) for one, own in zip(answers, named, strict=True)]
            sets = SetPromise(rule.alpha, rule.items, self.promises.caution)
        if asked.draws or asked.members:
            encoded = self.posterior.encode(asked.all_texts, free=True)
            network = self.posterior.network_log_probs(encoded)
            if asked.draws:
                answers = self.with_draws(answers, encoded, network)
            if asked.members:
                answers = self.with_averages(answers, encoded, network)
        return ClassifyAnswer(tuple(answers), sets)

    def with_draws(
        self, answers: list[ClassAnswer], encoded: EncodedTexts, network: Tensor
    ) -> list[ClassAnswer]:
        """The draws of the pool, or of the network where it answers alone."""
        members, each = self.posterior.members, network
        if members is not None:
            each = pool_members(members, network, encoded.texts, encoded.means)
        columns = each.exp().permute(1, 2, 0).tolist()
        return [replace(one, draws=dict(zip(self.labels, map(tuple, own), strict=True)))
                for one, own in zip(answers, columns, strict=True)]  # fmt: skip

    def with_averages(
        self, answers: list[ClassAnswer], encoded: EncodedTexts, network: Tensor
    ) -> list[ClassAnswer]:
        """Each member's own answer."""
        averages = {RECURRENT: averaged_draws(network)}
        if self.posterior.members is not None:
            averages |= average_parts(self.posterior.members, encoded.texts, encoded.means)
        told = {name: log_p.exp().tolist() for name, log_p in averages.items()}
        return [
            replace(one, members={name: dict(zip(self.labels, p[at], strict=True))
                                  for name, p in told.items()})
            for at, one in enumerate(answers)
        ]  # fmt: skip


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


KINDS: dict[type[Posterior], type[Served[Any]]] = {
    LanguagePosterior: ServedLanguage,
    ClassificationPosterior: ServedClassifier,
    CaptionPosterior: ServedCaptioner,
}


def find_model(models: Mapping[str, Served[Any]], name: str, kind: type[S]) -> S:
    """The model of this name, if it is of this kind."""
    if name not in models:
        known = ", ".join(models)
        raise Problem(404, f"one of the models {known}", repr(name[:80]), "see /v1/models")
    found = models[name]
    if not isinstance(found, kind):
        raise Problem(404, f"{kind.noun} under this path", f"{name}, which is {found.noun}",
                      "ask it what it answers, see /api")  # fmt: skip
    return found
