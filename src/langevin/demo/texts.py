"""War and Peace by bytes: one network, the average of its posterior, counts, and their pool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..predict.language import LanguagePosterior
from ..predict.load import open_as
from ..predict.results import Evaluation
from ..recipe import load_recipe
from ..store.folder import RECIPE, RunFolder
from ..training.members import add_members
from ..training.session import resume, start, train_until_done
from .stages import Stages

RECIPE_NAME = "demo"
PAPER = {"LSTM": 1.3375, "GRU": 1.2561}
"""Test nll in nats a byte by the samplers of the paper, over the same shares of the same book."""
PROMPT, LENGTH = "The French ", 350


def train_text(folder: Path, settings: Sequence[str], stages: Stages) -> None:
    """To the end, from wherever it stands."""
    began = (folder / RECIPE).exists()
    trainer = resume(folder) if began else start(load_recipe(RECIPE_NAME, list(settings)), folder)
    stages.leap(trainer.step / trainer.pace.total)
    if not trainer.finished:
        train_until_done(trainer, lambda at: stages.at(at.step / at.pace.total))


def count_text(folder: Path, stages: Stages) -> LanguagePosterior:
    """Counts join the samples, unless they have; what answers from then on."""
    add_members(RunFolder(folder), stages)
    return open_as(LanguagePosterior, folder)


def evaluate_text(posterior: LanguagePosterior, stages: Stages) -> Evaluation:
    return posterior.evaluate("test", progress=stages)


def continue_text(posterior: LanguagePosterior) -> str:
    """Some sentences by the pool."""
    text = "".join(posterior.generate(PROMPT, LENGTH, softmax_temperature=0.7))
    return PROMPT + " ".join(text.split())
