"""Word vectors of a recipe: what training reads, and what a trained run does without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..data.vectors import WordVectors, load_vectors
from ..errors import LangevinError
from ..recipe import Recipe, SentenceData

OF_VECTORS = ("embed", "frozen", "coverage", "vectors_sha256")
"""What a run remembers of word vectors, without which it can be used."""


def vectors_of(
    data: SentenceData, counts: Counter[str], facts: dict[str, Any] | None
) -> tuple[list[WordVectors], str]:
    """The word vectors of a recipe; of a run whose samples hold them none, and why, if they cannot
    be read any more."""
    try:
        return [load_vectors(name, counts) for name in data.vector_sets], ""
    except LangevinError as error:
        if facts is None:
            raise
        return [], str(error)


def embedding_width(recipe: Recipe, vectors: Sequence[WordVectors]) -> int:
    """Of the words that are trained; 0 where an encoder or projected vectors take their place."""
    model, data = recipe.model, recipe.data
    assert isinstance(data, SentenceData)
    if model.tied:
        raise LangevinError("a classifier has no output words to tie; set tied = false")
    if data.encoder is not None:
        if model.embed or model.characters:
            raise LangevinError("an encoder is read in place of words; leave embed and characters out")
        return 0
    if vectors and model.project is not None:
        return model.embed or 0
    if len(vectors) > 1:
        raise LangevinError(f"several word vectors are read through a projection, got {len(vectors)} and no project; "
                            f"set project = 64")
    if vectors and model.embed not in (None, vectors[0].dim):
        raise LangevinError(f"embed must be {vectors[0].dim} as in {vectors[0].name}, got {model.embed}; leave it out")
    return vectors[0].dim if vectors else model.embed or model.hidden
