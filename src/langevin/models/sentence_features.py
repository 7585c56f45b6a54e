"""Items of either kind, texts or dense vectors, and what reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import LangevinError
from .dense import Dense
from .logistic import Matrix
from .ngrams import Ngrams

Items = Sequence[str] | Tensor
"""Texts, or vectors [items, width]."""
Features = Ngrams | Dense


def learn_items(items: Items, least: int) -> Features:
    """What reads items like these; of texts the words that `least` of them have."""
    return Dense.fit(items) if isinstance(items, Tensor) else Ngrams.fit(items, least)


def read_items(features: Features, items: Items) -> Matrix:
    """[items, features]; texts for n-grams, vectors for dense rows."""
    if isinstance(features, Dense) and isinstance(items, Tensor):
        return features.rows(items)
    if isinstance(features, Ngrams) and not isinstance(items, Tensor):
        return features.rows(items)
    wanted, got = ("vectors", "texts") if isinstance(features, Dense) else ("texts", "vectors")
    raise LangevinError(f"expected {wanted} for this linear part, got {got}; pass {wanted}")


def take_items(items: Items, places: NDArray[np.int64]) -> Items:
    if isinstance(items, Tensor):
        return items[torch.from_numpy(places)]
    return [items[place] for place in places]


def check_items(items: Items, labels: int) -> None:
    """Refuse a single text in place of a list, no items, and other labels than items."""
    if isinstance(items, str):
        raise LangevinError("expected a list of texts, got one text; put it into a list")
    if not len(items):
        raise LangevinError("expected labelled items, got none; pass some rows")
    if len(items) != labels:
        raise LangevinError(f"expected a label for each of {len(items):,} items, got {labels:,}; "
                            f"pass items and labels of the same rows")
