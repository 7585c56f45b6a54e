"""What most people would take for labelled sentences: TF-IDF and logistic regression."""

from __future__ import annotations

import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union
from torch import Tensor

from ..tasks.classification import ClassifyTask
from .stages import Stages

STRENGTHS = (4.0, 16.0, 64.0)
"""C of the regression; validation chooses."""


def predict_linearly(task: ClassifyTask, stages: Stages) -> dict[str, Tensor]:
    """log p [sentences, classes] of validation and test, learnt from the same training rows."""
    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(ngram_range=(2, 5), analyzer="char_wb", sublinear_tf=True),
    )
    rows = {"train": features.fit_transform(task.texts["train"])}
    rows |= {name: features.transform(task.texts[name]) for name in ("valid", "test")}
    advance, best, found = stages.begin(len(STRENGTHS)), float("inf"), dict[str, Tensor]()
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=200)
        model.fit(rows["train"], task.targets["train"].numpy())
        said = {name: torch.from_numpy(model.predict_log_proba(rows[name])).float()
                for name in ("valid", "test")}  # fmt: skip
        nll = -float(said["valid"].gather(1, task.targets["valid"][:, None]).mean())
        if nll < best:
            best, found = nll, said
        advance()
    return found
