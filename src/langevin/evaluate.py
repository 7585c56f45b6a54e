"""Samples on disk → metrics of each, of the average, and of every collection. Each sample is run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from .posterior.average import LogMean
from .posterior.select import COLLECTIONS, choose
from .posterior.store import Sample
from .tasks.base import Task


def evaluate(
    task: Task, model: nn.Module, samples: Iterable[Sample], split: str, on_sample: Callable[[], None] = lambda: None,
    *, curve: bool = False, masked: bool = False,
) -> dict[str, Any]:
    """Metrics of every sample alone, of the last, and of the averaged probabilities.

    With `curve`, the log-probabilities of all samples are kept and the score of the forward, backward and thinned
    collections is given for 1, 2, … samples. `masked` leaves dropout on, with another mask for each sample.
    """
    mean, each, kept = LogMean(), [], []
    for number, sample in enumerate(samples):
        sample.load_into(model)
        log_probs = task.log_probs(model, split, number if masked else None)
        each.append({"step": sample.step} | task.metrics(log_probs, split))
        mean.add(log_probs)
        if curve:
            kept.append(log_probs)
        on_sample()
    single = {k: v for k, v in each[-1].items() if k != "step"} if each else {}
    result = {"single": single, "averaged": task.metrics(mean.value(), split), "each": each}
    return result | ({"curve": collection_curves(task, kept, split)} if curve else {})


def collection_curves(task: Task, kept: list[Tensor], split: str) -> dict[str, list[float]]:
    """Score of each collection of 1 … K samples."""

    def score(mean: LogMean) -> float:
        return task.metrics(mean.value(), split)[task.score]

    curves: dict[str, list[float]] = {}
    for how in COLLECTIONS:
        mean, scores = LogMean(), []
        for n in range(1, len(kept) + 1):
            if how == "thinned":  # its members change with n
                mean = LogMean()
                for log_probs in choose(kept, how, n):
                    mean.add(log_probs)
            else:  # one more at the end, or one more before the others
                mean.add(kept[n - 1] if how == "forward" else kept[-n])
            scores.append(score(mean))
        curves[how] = scores
    return curves
