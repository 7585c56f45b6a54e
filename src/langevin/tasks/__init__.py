"""What differs between jobs: likelihood, evaluation, metrics. One small file each."""

from ..data.vocab import Vocabulary
from ..recipe import Recipe
from .base import Task
from .language_model import LanguageModelTask


def open_task(recipe: Recipe, vocabulary: Vocabulary | None = None, sha256: str | None = None) -> LanguageModelTask:
    """Load the data of a recipe: for a trained model in its vocabulary, and refused if it is no longer the same."""
    return LanguageModelTask(recipe, vocabulary, sha256)


__all__ = ["Task", "open_task"]
