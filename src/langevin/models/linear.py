"""A linear posterior for sentences: n-grams or dense vectors → draws of class probabilities.

Multinomial logistic regression (`logistic.py`) over n-grams (`ngrams.py`) or vectors (`dense.py`),
fitted by `linear_fit.py`. Draws are not stored, but drawn again from the seed, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..errors import LangevinError
from ..samplers.noise import normal
from .dense import Dense
from .linear_record import ClassWeight, LinearRecord, pack, unpack
from .logistic import Floats, Matrix, log_softmax
from .ngrams import Ngrams
from .sentence_features import Features, Items, read_items

IN_MEMORY = 256 * 2**20
"""Bytes of drawn weights that are kept between calls."""


@dataclass(frozen=True)
class LinearChoice:
    """What held-out nll decides: the prior variance, and how many texts must have a word."""

    prior_variance: float
    least: int
    nll: float


@dataclass(frozen=True)
class LinearPosterior:
    """W ~ N(`weights`, `deviation`²), [features, classes], on what `reader` makes of items."""

    classes: tuple[str, ...]
    reader: Features
    weights: Tensor
    deviation: Tensor
    choice: LinearChoice
    class_weight: ClassWeight
    seed: int
    draws: int
    _drawn: list[Floats] = field(default_factory=list, repr=False, compare=False)

    def features(self, items: Items) -> Matrix:
        """What the weights multiply, [items, features]."""
        return read_items(self.reader, items)

    def log_probs(self, items: Items) -> Tensor:
        """Log probability of each class by each draw, [draws, items, classes]."""
        rows = self.features(items)
        scores = [torch.from_numpy(log_softmax(rows @ self._draw(number)).astype(np.float32))
                  for number in range(self.draws)]
        return torch.stack(scores)

    def _draw(self, number: int) -> Floats:
        if number < len(self._drawn):
            return self._drawn[number]
        noise = [normal((len(self.weights),), seed=self.seed, parameter=column, step=number)
                 for column in range(len(self.classes))]
        drawn: Floats = (self.weights + self.deviation * torch.stack(noise, 1)).numpy()
        if number == len(self._drawn) and self.draws * drawn.nbytes <= IN_MEMORY:
            self._drawn.append(drawn)
        return drawn

    def to_tensors(self) -> dict[str, Tensor]:
        """All of it, for a safetensors file."""
        grams = self.reader if isinstance(self.reader, Ngrams) else None
        record = LinearRecord(
            classes=self.classes, class_weight=self.class_weight, seed=self.seed,
            draws=self.draws, prior_variance=self.choice.prior_variance,
            least=self.choice.least, nll=self.choice.nll,
            words=grams.words if grams else None,
            characters=grams.characters if grams else None,
        )  # fmt: skip
        return {"record": pack(record), "weights": self.weights, "deviation": self.deviation,
                **self.reader.to_tensors()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """What `to_tensors` gave; anything damaged or foreign is refused."""
        record = unpack(tensors)
        reader: Features
        if record.words is None or record.characters is None:
            reader = Dense.from_tensors(tensors)
        else:
            reader = Ngrams.from_tensors(record.words, record.characters, tensors)
        shape = (reader.width, len(record.classes))
        for name in ("weights", "deviation"):
            if tensors[name].shape != shape:
                raise LangevinError(f"expected {name} of shape {list(shape)} in a linear part, "
                                    f"got {list(tensors[name].shape)}; fit it again")
        choice = LinearChoice(record.prior_variance, record.least, record.nll)
        return cls(record.classes, reader, tensors["weights"], tensors["deviation"], choice,
                   record.class_weight, record.seed, record.draws)
