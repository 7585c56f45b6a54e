"""The posteriors that are served, each with the queues in front of it."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from statistics import median
from typing import Any, Generic, TypeVar

from ..predict.base import Posterior
from ..process import SILENT, Progress
from .answers import AnswerCost, ModelAbout
from .problems import Problem
from .worker import Worker

WARM, TIMED = 2, 5
"""Answers before anybody asks: some to warm up, then some to tell what one costs."""
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
    def label_names(self) -> tuple[str, ...]:
        """What people read in their place."""
        return self.labels

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
            how=chosen.how, why=chosen.why, labels=self.labels,
            label_names=self.label_names, members=self.members,
            network=f"{sides}{shape.layers}×{shape.hidden} {shape.cell.upper()}",
            parameters=sum(weight.numel() for weight in self.posterior.model.parameters()),
            sampler=recipe.sampler.name, temperature=None if isinstance(heat, str) else heat,
            recipe=without_folders(recipe.to_toml()), level=self.level, pictures=self.pictures, cost=self.cost,
            limits=self.worker.limits,
        )  # fmt: skip


def without_folders(recipe: str) -> str:
    """Files by their names alone: where they lie on this machine is nobody's business."""
    return re.sub(r'^(?!title)(\w+ = )"[^"]*/([^"/]+)"$', r'\1"\2"', recipe, flags=re.MULTILINE)


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
