"""What differs between jobs: likelihood, batches, scores; one pass over a split."""

from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..recipe import Recipe
from ..store.folder import RunFolder
from ..store.own_features import with_own_features
from .base import Task

CLASSES = {
    "language-model": ("language_model", "LanguageModelTask", "recorded_language_model"),
    "classify": ("classification", "ClassifyTask", "recorded_classifier"),
    "caption": ("captioning", "CaptionTask", "recorded_captioner"),
}
"""Of each task the file, loaded when one is opened, its class, and what builds the model without
the data."""


def open_task(recipe: Recipe, vocabulary: Vocabulary | None = None, facts: dict[str, Any] | None = None) -> Task:
    """Load the data of a recipe: for a trained model in its vocabulary, refused if it is not what
    `facts` say."""
    file, name, _ = CLASSES[recipe.task]
    task: Task = getattr(import_module(f".{file}", __name__), name)(recipe, vocabulary, facts)
    return task


def open_run_task(folder: RunFolder) -> Task:
    """The task and the data that a run was trained on."""
    return open_task(run_recipe(folder), folder.vocabulary, folder.facts)


def run_recipe(folder: RunFolder) -> Recipe:
    """The recipe of a run, which reads what the run keeps of its data."""
    return with_own_features(folder.recipe, folder.path)


def keep_data(task: Task, folder: Path) -> None:
    """Put into a new run what was computed of its data, so that it stands on its own."""
    if task.name == "caption":
        from .captioning import CaptionTask

        assert isinstance(task, CaptionTask)
        task.keep_features(folder)


def model_of(recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any]) -> nn.Module:
    """The model of a run whose data need not be there, to load samples into: from what the run
    folder remembers."""
    file, _, build = CLASSES[recipe.task]
    try:
        module = import_module(f".{file}", __name__)
        model: nn.Module = getattr(module, build)(recipe, vocabulary, facts)
    except KeyError as missing:
        raise LangevinError(f"expected {missing} among what is remembered of a {recipe.task} run, found none") from None
    return model


__all__ = ["CLASSES", "Task", "keep_data", "model_of", "open_run_task", "open_task", "run_recipe"]
