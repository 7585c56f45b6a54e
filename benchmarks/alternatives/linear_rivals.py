"""Rivals that are linear: n-grams by TF-IDF, and the mean state of a frozen encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from .records import Record

NGRAM_C, VECTOR_C = (2.0, 8.0, 32.0, 128.0), (0.001, 0.01, 0.1, 1.0)
FLOOR = 1e-12


class LinearRival:
    """Features and a logistic regression; C by the nll of validation."""

    def __init__(self, features: Any, grid: Sequence[float]) -> None:
        self.features, self.grid, self.trials = features, grid, list[Record]()
        self.c, self.model = grid[0], LogisticRegression()

    def choose(self, train: Any, labels: Tensor, valid: Any, truth: Tensor) -> None:
        rows, held_out = self.features.fit_transform(train), self.features.transform(valid)
        for c in self.grid:
            model = logistic(c).fit(rows, labels.numpy())
            nll = -float(log_proba(model, held_out).gather(1, truth[:, None]).mean())
            self.trials.append({"C": c, "valid_nll": nll})
            if nll <= min(trial["valid_nll"] for trial in self.trials):
                self.c, self.model = c, model

    def refit(self, texts: Any, labels: Tensor) -> None:
        """On more rows, with the C that was chosen."""
        self.model = logistic(self.c).fit(self.features.fit_transform(texts), labels.numpy())

    def log_probs(self, items: Any) -> Tensor:
        """[1, items, classes]."""
        return log_proba(self.model, self.features.transform(items))[None]


def logistic(c: float) -> LogisticRegression:
    return LogisticRegression(C=c, max_iter=2000)


def log_proba(model: LogisticRegression, rows: Any) -> Tensor:
    p = np.clip(model.predict_proba(rows), FLOOR, None)
    return torch.from_numpy(np.log(p / p.sum(1, keepdims=True))).float()


def ngram_rival() -> LinearRival:
    """Words 1-2, characters 2-5 within words, sublinear."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\S+")
    letters = TfidfVectorizer(ngram_range=(2, 5), analyzer="char_wb", sublinear_tf=True)
    return LinearRival(make_union(words, letters), NGRAM_C)


def vector_rival() -> LinearRival:
    return LinearRival(StandardScaler(), VECTOR_C)
