"""What differs between jobs: likelihood, evaluation, metrics. One small file each."""

from importlib import import_module
from typing import Any

from ..data.vocab import Vocabulary
from ..recipe import Recipe
from .base import Task

CLASSES = {
    "language-model": ("language_model", "LanguageModelTask"),
    "classify": ("classify", "ClassifyTask"),
    "caption": ("caption", "CaptionTask"),
}
"""File and class of each task; loaded when one is opened."""


def open_task(recipe: Recipe, vocabulary: Vocabulary | None = None, facts: dict[str, Any] | None = None) -> Task:
    """Load the data of a recipe: for a trained model in its vocabulary, refused if it is not what `facts` say."""
    file, name = CLASSES[recipe.task]
    task: Task = getattr(import_module(f".{file}", __name__), name)(recipe, vocabulary, facts)
    return task


__all__ = ["Task", "open_task"]
