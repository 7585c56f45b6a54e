"""Definitions of WordNet by what they define: answers accepted at a promised risk, and a
rival's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..errors import LangevinError
from ..posterior.scores import Result
from ..posterior.streaming import predictive
from ..predict.classification import ClassificationPosterior
from ..predict.decision import (
    Decision,
    LabelledPredictions,
    Promise,
    RiskTarget,
    learn,
    score_promise,
)
from ..predict.load import open_as
from ..recipe import load_recipe
from ..recipe.sentences import default_recipe
from ..store.folder import RECIPE, RunFolder
from ..tasks.classification import ClassifyTask
from ..tasks.members import add_linear_members
from ..training.session import resume, start, train_until_done
from .definitions import write_definitions
from .linear_rival import predict_linearly
from .stages import Stages

RISK = 0.05
SPLITS = ["valid_share=0.2", "test_share=0.2"]
SHOWN_ACCEPTED, SHOWN_SENT = 4, 3
"""Sentences of the test split that are shown, the first of them."""
RIVAL, OURS = "TF-IDF + logistic regression", "langevin, the pool"


@dataclass(frozen=True)
class Classifier(Result):
    """How one of them did on sentences of the test split."""

    name: str
    nll: float
    error: float
    promise: Promise | None
    """What became there of the rule that was learnt on validation; None where none could be."""


@dataclass(frozen=True)
class Answer(Result):
    """A sentence of the test split, and what became of it."""

    text: str
    label: str
    answer: str
    p: float
    accepted: bool


@dataclass(frozen=True)
class LabelledSentences(Result):
    """The set, its classifiers, some answers."""

    classes: tuple[str, ...]
    sizes: dict[str, int]
    """Sentences by split."""
    risk: float
    confidence: float
    classifiers: tuple[Classifier, ...]
    caution: str | None
    """Why the promise is not exact."""
    answers: tuple[Answer, ...]


def train_sentences(folder: Path, settings: Sequence[str], stages: Stages) -> None:
    """The recipe of `langevin train --task classify` on the definitions, beside the run."""
    if (folder / RECIPE).exists():
        trainer = resume(folder)
    else:
        corpus = write_definitions(folder.with_name("definitions.csv")).resolve()
        recipe = load_recipe(default_recipe(None, None), [f"corpus={corpus}", *SPLITS, *settings])
        trainer = start(recipe, folder)
    stages.leap(trainer.step / trainer.pace.total)
    if not trainer.finished:
        train_until_done(trainer, lambda at: stages.at(at.step / at.pace.total))


def join_linear_parts(folder: Path, stages: Stages) -> ClassificationPosterior:
    add_linear_members(RunFolder(folder), stages)
    return open_as(ClassificationPosterior, folder)


def judge_sentences(posterior: ClassificationPosterior, stages: Stages) -> LabelledSentences:
    """Rules learnt on validation and tested once, ours and the rival's alike."""
    task, target = posterior.task, RiskTarget.parse(RISK, None, None, "auto")
    assert target is not None
    assert target.confidence is not None
    rival = {name: LabelledPredictions(predictive(log_p[None]), task.targets[name], 0)
             for name, log_p in predict_linearly(task, stages).items()}  # fmt: skip
    ours = posterior.predict_splits(("valid", "test"))
    try:
        decision: Decision | None = posterior.decide(RISK)
    except LangevinError:  # no coverage at this risk
        decision = None
    return LabelledSentences(
        classes=tuple(posterior.labels), risk=RISK, confidence=target.confidence,
        sizes={name: len(task.texts[name]) for name in task.splits},
        classifiers=tuple(score_classifier(name, splits, target) for name, splits in
                          {RIVAL: rival, OURS: ours}.items()),
        caution=decision.caution if decision else None,
        answers=tuple(shown_answers(posterior, task)) if decision else (),
    )  # fmt: skip


def score_classifier(
    name: str, splits: dict[str, LabelledPredictions], target: RiskTarget
) -> Classifier:
    """Scores on the test split, and the rule of validation there."""
    test = splits["test"]
    try:
        promise = score_promise(learn(target, splits["valid"]), test)
    except LangevinError:
        promise = None
    return Classifier(name, surprise_of(test), wrong_share(test), promise)


def surprise_of(part: LabelledPredictions) -> float:
    p: Tensor = part.predictive.of(part.labels)[0]
    return -float(p.double().log().mean())


def wrong_share(part: LabelledPredictions) -> float:
    return 1 - float(part.correct.double().mean())


def shown_answers(posterior: ClassificationPosterior, task: ClassifyTask) -> Iterator[Answer]:
    """The first of the test split that are accepted, then the first that go to a person."""
    some = torch.arange(min(60, len(task.texts["test"]))).tolist()
    texts = [task.texts["test"][number] for number in some]
    found = [
        Answer(text, posterior.labels[int(task.targets["test"][number])], prediction.label,
               prediction.p[prediction.label], bool(prediction.accepted))
        for number, text, prediction in zip(some, texts, posterior.predict(texts), strict=True)
    ]  # fmt: skip
    yield from [answer for answer in found if answer.accepted][:SHOWN_ACCEPTED]
    yield from [answer for answer in found if not answer.accepted][:SHOWN_SENT]
