"""Averages of probabilities over posterior samples, one sample in memory at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from ..store.samples import Sample, SampleStore


class LogMean:
    """log of the mean of probabilities that arrive as logarithms: never a mean of logits or of losses."""

    def __init__(self, log_sum: Tensor | None = None, count: int = 0) -> None:
        self.log_sum, self.count = log_sum, count

    def add(self, log_p: Tensor) -> None:
        self.log_sum = log_p if self.log_sum is None else torch.logaddexp(self.log_sum, log_p)
        self.count += 1

    @classmethod
    def joined(cls, parts: Iterable[LogMean]) -> LogMean:
        """The mean over all that was added to any of the parts."""
        joint = cls()
        for part in parts:
            if part.log_sum is not None:
                joint.log_sum = part.log_sum if joint.log_sum is None else torch.logaddexp(joint.log_sum, part.log_sum)
                joint.count += part.count
        return joint

    def value(self) -> Tensor:
        if self.log_sum is None:
            raise LangevinError("an average needs at least one sample, got none")
        return self.log_sum - math.log(self.count)


def members_of(model: nn.Module, samples: Iterable[Sample]) -> list[nn.Module]:
    """A model for each sample, all in memory, in evaluation mode and without gradients."""
    made = []
    for sample in samples:
        member = copy.deepcopy(model).eval().requires_grad_(False)
        sample.load_into(member)
        made.append(member)
    return made


@dataclass(frozen=True)
class Averaged:
    """Mean probabilities over the samples and their spread."""

    probabilities: Tensor
    std: Tensor
    """Standard deviation over the samples (over n−1; zero for one sample)."""
    samples: int


def average(
    store: SampleStore | str | Path | Iterable[Sample], model: nn.Module, predict: Callable[[nn.Module], Tensor]
) -> Averaged:
    """p(y|x) = 1/S Σ p(y|x, θ_s). `predict(model)` returns logits or log-probabilities, [items, …, classes].

    The model lends its shape alone: a copy of it, in evaluation mode, holds the samples one after the other, so that
    a sampler that is attached to its embedding keeps what it owes to the rows.
    """
    copied = copy.deepcopy(model).eval()
    mean, spread, count = torch.zeros(()), torch.zeros(()), 0
    store = SampleStore(store) if isinstance(store, str | Path) else store
    for sample in store.read() if isinstance(store, SampleStore) else store:
        sample.load_into(copied)
        with torch.no_grad():
            logits = predict(copied)
            refuse_no_logits(logits)
            p = torch.softmax(logits, dim=-1)
        count += 1
        step = p - mean
        mean = mean + step / count
        spread = spread + step * (p - mean)  # Welford
    if not count:
        raise LangevinError("an average needs at least one sample, got none")
    return Averaged(mean, torch.sqrt(spread / max(count - 1, 1)), count)


def refuse_no_logits(given: object) -> None:
    """What a softmax over the last axis would turn into wrong probabilities without a word."""
    if not isinstance(given, Tensor):
        raise LangevinError(f"expected a tensor of logits, got {type(given).__name__}; let `predict` return one, such "
                            f"as the first part of what the model returns")
    refuse_few_classes(given)
    sums_to_one = (given.sum(-1) - 1).abs().max() < 1e-4 if given.numel() else False
    if sums_to_one and given.min() >= 0:
        raise LangevinError("expected logits or log-probabilities, got probabilities, as every row sums to 1; return "
                            "their logarithm, or what comes before the softmax")


def refuse_few_classes(logits: Tensor) -> None:
    if logits.dim() < 2 or logits.shape[-1] < 2:
        raise LangevinError(
            f"expected logits of [items, …, classes] with two classes or more, got {tuple(logits.shape)}; make one "
            f"logit z of two classes a pair, torch.stack([torch.zeros_like(z), z], -1), and one item a batch by [None]"
        )
