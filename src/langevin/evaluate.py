"""Samples on disk → metrics of the last one and of the average, each sample run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from .posterior.average import LogMean
from .posterior.store import Sample
from .tasks.base import Task


def evaluate(
    task: Task, model: nn.Module, samples: Iterable[Sample], split: str, on_sample: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Metrics of every sample alone, of the last, and of the averaged probabilities."""
    mean, each = LogMean(), []
    for sample in samples:
        sample.load_into(model)
        log_probs = task.log_probs(model, split)
        each.append({"step": sample.step} | task.metrics(log_probs, split))
        mean.add(log_probs)
        on_sample()
    single = {k: v for k, v in each[-1].items() if k != "step"} if each else {}
    return {"single": single, "averaged": task.metrics(mean.value(), split), "each": each}
