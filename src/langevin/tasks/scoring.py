"""Samples on disk → metrics of each, of the average, and of every collection. Each sample is run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from ..posterior.average import LogMean
from ..store.samples import COLLECTIONS, Sample, choose
from .base import Task


def evaluate(
    task: Task, model: nn.Module, samples: Iterable[Sample], split: str, on_sample: Callable[[], None] = lambda: None,
    *, curve: bool = False, masked: bool = False, see: Callable[[Tensor], None] = lambda log_probs: None,
) -> dict[str, Any]:
    """Metrics of every sample alone, of the last, and of the averaged probabilities.

    Samples of several chains are averaged with equal weights, and the average within each chain is given beside.
    With `curve`, the log-probabilities of all samples are kept and the score of the forward, backward and thinned
    collections is given for 1, 2, … samples (of each chain, as far as the shortest goes). `masked` leaves
    dropout on, with another mask for each sample. `see` is shown the log-probabilities of each sample.
    """
    each: list[dict[str, Any]] = []
    within: dict[int, LogMean] = {}
    kept: dict[int, list[Tensor]] = {}
    for number, sample in enumerate(samples):
        sample.load_into(model)
        log_probs = task.log_probs(model, split, number if masked else None)
        each.append({"step": sample.step, "chain": sample.chain} | task.metrics(log_probs, split))
        within.setdefault(sample.chain, LogMean()).add(log_probs)
        see(log_probs)
        if curve:
            kept.setdefault(sample.chain, []).append(log_probs)
        on_sample()
    single = {k: v for k, v in each[-1].items() if k not in ("step", "chain")} if each else {}
    averaged = task.metrics(LogMean.joined(within.values()).value(), split)
    chains = [
        {"chain": chain, "samples": mean.count, "averaged": task.metrics(mean.value(), split)}
        for chain, mean in within.items()
    ]
    result = {"single": single, "averaged": averaged, "each": each} | ({"chains": chains} if len(chains) > 1 else {})
    return result | ({"curve": collection_curves(task, list(kept.values()), split)} if curve else {})


def collection_curves(task: Task, kept: list[list[Tensor]], split: str) -> dict[str, list[float]]:
    """Score of each collection of 1 … K samples of each chain."""

    def score(mean: LogMean) -> float:
        return task.metrics(mean.value(), split)[task.score]

    curves: dict[str, list[float]] = {}
    for how in COLLECTIONS:
        mean, scores = LogMean(), []
        for n in range(1, min(map(len, kept)) + 1):
            if how == "thinned":  # its members change with n
                mean = LogMean()
            for chain in kept:
                chosen = choose(chain, how, n)
                if how == "forward":  # one more at the end
                    chosen = chosen[-1:]
                elif how == "backward":  # one more before the others
                    chosen = chosen[:1]
                for log_probs in chosen:
                    mean.add(log_probs)
            scores.append(score(mean))
        curves[how] = scores
    return curves
