"""Dense rows, such as sentence vectors of an encoder → centred and scaled, with a constant.

Columns get mean 0 and variance 1/width, so that a row has length 1 as rows of n-grams have, and
the same prior variances fit. The last column is constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..errors import LangevinError
from .logistic import Matrix


@dataclass(frozen=True)
class Dense:
    """The mean of each column, and what it is divided by."""

    centre: Tensor
    scale: Tensor

    @classmethod
    def fit(cls, vectors: Tensor) -> Self:
        check_vectors(vectors, None)
        doubles = vectors.double()
        deviation = doubles.std(0, correction=0)
        constant = deviation <= 1e-6 * doubles.abs().amax(0)
        scale = deviation.where(~constant, torch.ones(())) * vectors.shape[1] ** 0.5
        return cls(doubles.mean(0).float(), scale.float())

    @property
    def width(self) -> int:
        return len(self.centre) + 1

    def rows(self, vectors: Tensor) -> Matrix:
        """[items, width]."""
        check_vectors(vectors, len(self.centre))
        standard = (vectors.float() - self.centre) / self.scale
        rows: Matrix = np.hstack([standard.numpy(), np.ones((len(vectors), 1), np.float32)])
        return rows

    def to_tensors(self) -> dict[str, Tensor]:
        return {"centre": self.centre, "scale": self.scale}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        centre, scale = tensors["centre"], tensors["scale"]
        if centre.ndim != 1 or scale.shape != centre.shape or bool((scale <= 0).any()):
            raise LangevinError(
                f"expected centre and positive scale of each column, got shapes "
                f"{tuple(centre.shape)} and {tuple(scale.shape)}; fit the linear part again"
            )
        return cls(centre, scale)


def check_vectors(vectors: Tensor, width: int | None) -> None:
    """Refuse what is no matrix of finite numbers, or has another width than was learnt."""
    wanted = "[items, numbers]" if width is None else f"[items, {width}]"
    if vectors.ndim != 2 or not vectors.shape[1] or width not in (None, vectors.shape[1]):
        raise LangevinError(f"expected vectors {wanted}, got {list(vectors.shape)}; "
                            f"use the encoder that the linear part was fitted with")
    if not bool(vectors.isfinite().all()):
        row = int((~vectors.isfinite()).any(1).nonzero()[0])
        raise LangevinError(f"expected finite numbers in vectors, row {row + 1} has others; "
                            f"check what they come from")
