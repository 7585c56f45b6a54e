"""The sentences that a classifier is least certain of, and the states that it has of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..data.buckets import in_length_order
from ..errors import LangevinError
from ..models.classifier import SentenceClassifier
from ..posterior.scores import Result
from ..posterior.uncertainty import Predictive, uncertainty_score
from ..process import SILENT, Progress
from .classification import ClassificationPosterior

MOST_POINTS = 2000
"""Sentences in a figure; t-SNE of more takes minutes and shows nothing new."""


@dataclass(frozen=True)
class UncertainSentence(Result):
    """A sentence with the probability of its true and of its predicted class, and their spread."""

    rank: int
    text: str
    score: float
    true: str
    predicted: str
    correct: bool
    true_mean: float
    true_std: float
    predicted_mean: float
    predicted_std: float
    entropy: float
    mutual_information: float


@dataclass(frozen=True)
class SentenceMap:
    """Sentences as their states, the least certain first: what a figure needs."""

    statistic: str
    listed: tuple[UncertainSentence, ...]
    """The least certain ones."""
    states: Tensor
    """[sentences, width], of these and of others; labels and scores likewise."""
    labels: Tensor
    scores: Tensor
    names: list[str]


def map_sentences(
    posterior: ClassificationPosterior, top: int = 10, by: str | None = None, split: str = "test",
    progress: Progress = SILENT,
) -> SentenceMap:
    """The `top` least certain sentences of a split, and MOST_POINTS of the others at most.

    `by` ranks them: standard_deviation unless said otherwise, entropy where there is one sample.
    """
    encoded, task = posterior.split(split), posterior.task
    rows = [row for row, none in enumerate(encoded.empty) if not none]
    if not rows:
        raise LangevinError(f"expected sentences with words in the {split} split, all of its texts "
                            f"are empty")
    by = by or ("standard_deviation" if len(posterior) > 1 else "entropy")
    encoded, labels = encoded.take(rows), task.targets[split][torch.tensor(rows)]
    found = posterior.predictive(encoded, progress)
    score = uncertainty_score(by, found)
    order = score.argsort(descending=True, stable=True)
    listed = tuple(
        UncertainSentence(rank, encoded.texts[at], float(score[at]),
                          *both_classes(found, int(labels[at]), at, posterior.label_names))
        for rank, at in enumerate(order[:top].tolist(), 1)
    )
    rest = order[top:]
    if len(rest):
        even = torch.linspace(0, len(rest) - 1, min(len(rest), MOST_POINTS)).round().long()
        rest = rest[even]
    shown = torch.cat([order[:top], rest])
    states = mean_states(posterior, encoded.take(shown.tolist()).sentences, progress)
    return SentenceMap(by, listed, states, labels[shown], score[shown], posterior.label_names)


def both_classes(found: Predictive, true: int, at: int, names: list[str]) -> tuple[Any, ...]:
    """What an UncertainSentence tells of the true and of the predicted class."""
    answer, p, std = int(found.label[at]), found.probabilities[at], found.std[at]
    each = [float(values[label]) for label in (true, answer) for values in (p, std)]
    return (names[true], names[answer], true == answer, *each, float(found.total[at]),
            float(found.epistemic[at]))


@torch.no_grad()
def mean_states(
    posterior: ClassificationPosterior, sentences: list[Tensor], progress: Progress = SILENT
) -> Tensor:
    """What is read out of sentences, averaged over the samples of each chain, side by side.

    Units keep their meaning along a chain but not from one to another.
    """
    model, device = posterior.model, posterior.device
    assert isinstance(model, SentenceClassifier)
    sums, counts = dict[int, Tensor](), dict[int, int]()
    advance = progress.begin(len(posterior))
    model.eval()

    def states(tokens: Tensor, lengths: Tensor) -> Tensor:
        return model.features(tokens.to(device), lengths.to(device)).cpu()

    for draw in posterior.draws:
        draw.load_into(model)
        own = in_length_order(sentences, states)
        sums[draw.chain] = sums.get(draw.chain, torch.zeros(())) + own
        counts[draw.chain] = counts.get(draw.chain, 0) + 1
        advance()
    return torch.cat([total / counts[chain] for chain, total in sums.items()], dim=1)
