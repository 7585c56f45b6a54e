"""Classifiers that are served: the texts of all that ask are one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..predict.classification import ClassificationPosterior
from ..predict.encoded import EncodedTexts
from ..predict.linear_pool import average_parts
from ..predict.prediction_sets import name_sets
from ..predict.results import Prediction
from ..process import SILENT, Progress
from ..store.linear_members import RECURRENT
from ..tasks.members import averaged_draws, pool_members
from .answers import ClassAnswer, ClassifyAnswer, SetPromise, encode
from .models import USUAL, Served
from .promises import Promises
from .requests import ClassifyRequest
from .worker import Batches, Worker

TEXTS = 1024
"""Texts that one batch answers; a request that brings more is a batch by itself."""


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
    def label_names(self) -> tuple[str, ...]:
        return tuple(self.posterior.label_names)

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
