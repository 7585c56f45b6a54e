"""What differs between jobs: likelihood, evaluation, metrics. One small file each."""

from ..data.vocab import Vocabulary
from ..recipe import Recipe
from .base import Task
from .language_model import LanguageModelTask


def open_task(recipe: Recipe, vocabulary: Vocabulary | None = None) -> LanguageModelTask:
    """Load the data of a recipe; with the vocabulary of a trained model, in that model's numbering."""
    return LanguageModelTask(recipe, vocabulary)


__all__ = ["Task", "open_task"]
