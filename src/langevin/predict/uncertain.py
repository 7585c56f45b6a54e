"""The sentences that a run is least certain about, and the states it has of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..data.buckets import in_length_order
from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.uncertainty import Predictive, uncertainty_score
from .classification import Classifier
from ..process import Progress, SILENT

MOST_POINTS = 2000
"""Sentences in a figure; t-SNE of more takes minutes and shows nothing new."""


@dataclass(frozen=True)
class Landscape:
    """Sentences as their states: what a figure needs. Tensors are [items] but for the states."""

    states: Tensor
    labels: Tensor
    scores: Tensor
    names: list[str]


def most_uncertain(
    classifier: Classifier, top: int = 10, statistic: str | None = None, split: str = "test",
    progress: Progress = SILENT, *, states: bool = False,
) -> tuple[dict[str, Any], Landscape | None]:
    """The `top` least certain sentences with mean and spread of their true and their predicted class over the samples.

    `statistic` ranks them: standard_deviation unless said otherwise, entropy where there is one sample. With `states`,
    also the states and scores of (at most MOST_POINTS) sentences.
    """
    task = classifier.open_task()
    check_split(split, task.splits)
    statistic = statistic or ("standard_deviation" if len(classifier.samples) > 1 else "entropy")
    rows = [number for number, sentence in enumerate(task.sentences[split]) if len(sentence)]
    if not rows:
        raise LangevinError(f"expected sentences with words in the {split} split, all of its texts are empty")
    sentences, truth = [task.sentences[split][n] for n in rows], task.targets[split][torch.tensor(rows)]
    advance = progress.begin(len(classifier.samples) * (2 if states else 1))
    given = classifier.predict({split: sentences}, advance)[split]
    uncertain = uncertainty_score(statistic, given)
    order = uncertain.argsort(descending=True, stable=True)
    texts = [task.texts[split][n] for n in rows]
    listed = [
        {"rank": rank, "text": texts[at], "score": float(uncertain[at])} | described(given, truth, at, task.label_names)
        for rank, at in enumerate(order[:top].tolist(), 1)
    ]
    result = {
        "run": str(classifier.folder.path), "split": split, "statistic": statistic, "samples": given.samples,
        "skipped": classifier.skipped, "sentences": listed,
    }
    if not states:
        return result, None
    rest = order[top:]
    some = rest[torch.linspace(0, len(rest) - 1, min(len(rest), MOST_POINTS)).round().long()] if len(rest) else rest
    shown = torch.cat([order[:top], some])
    made = mean_states(classifier, [sentences[n] for n in shown.tolist()], advance)
    return result, Landscape(made, truth[shown], uncertain[shown], list(task.label_names))


def described(given: Predictive, truth: Tensor, at: int, names: Sequence[str]) -> dict[str, Any]:
    """Mean and standard deviation over the samples of the true and of the predicted class of one sentence."""
    true, answer = int(truth[at]), int(given.label[at])
    p, std = given.probabilities[at].tolist(), given.std[at].tolist()
    return {
        "true": names[true], "predicted": names[answer], "correct": true == answer, "true_mean": p[true],
        "true_std": std[true], "predicted_mean": p[answer], "predicted_std": std[answer],
        "entropy": float(given.total[at]), "mutual_information": float(given.epistemic[at]),
    }


@torch.no_grad()
def mean_states(classifier: Classifier, sentences: list[Tensor], advance: Any = lambda: None) -> Tensor:
    """The last states of sentences, averaged over the samples of each chain, chains side by side.

    Units keep their meaning along a chain but not from one to another.
    """
    sums: dict[int, Tensor] = {}
    device = next(classifier.model.parameters()).device
    classifier.model.eval()
    for number, sample in enumerate(classifier.samples):
        classifier.load(number)
        states = in_length_order(
            sentences, lambda tokens, lengths: classifier.model.features(tokens.to(device), lengths.to(device)).cpu())
        sums[sample.chain] = sums.get(sample.chain, torch.zeros(())) + states
        advance()
    counts = [sum(sample.chain == chain for sample in classifier.samples) for chain in sums]
    return torch.cat([total / count for total, count in zip(sums.values(), counts, strict=True)], dim=1)
