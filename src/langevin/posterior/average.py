"""Averages of predictions over posterior samples, one sample in memory at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from ..store.samples import Sample, SampleStore
from .streaming import Moments, welford_


class LogMean:
    """log of the mean of probabilities that come as logarithms: no mean of logits or of losses."""

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
                joint.add(part.log_sum)
                joint.count += part.count - 1
        return joint

    def value(self) -> Tensor:
        if self.log_sum is None:
            raise LangevinError("an average needs at least one sample, got none")
        return self.log_sum - math.log(self.count)


def members_of(model: nn.Module, samples: Iterable[Sample]) -> list[nn.Module]:
    """A model for each sample, all in memory, in evaluation mode and without gradients."""
    members = []
    for sample in samples:
        member = copy.deepcopy(model).eval().requires_grad_(False)
        sample.load_into(member)
        members.append(member)
    return members


@dataclass(frozen=True)
class Averaged:
    """Mean probabilities over the samples, and how far the samples agree."""

    probabilities: Tensor
    """p̄, [items, …, classes]."""
    std: Tensor
    """Standard deviation over the samples (over n−1; zero for one sample), the same shape."""
    entropy: Tensor
    """H[p̄] in nats, [items, …]: how uncertain the answer is in all."""
    mutual_information: Tensor
    """H[p̄] − 1/S Σ H[p_s] in nats, [items, …]: as much of it as the samples disagree about."""
    samples: int


@dataclass(frozen=True)
class AveragedValues:
    """Mean of what the samples predict, and its variance in two parts; tensors of one shape."""

    mean: Tensor
    between: Tensor
    """Variance of the samples' predictions (over n−1; zero for one): the weights are uncertain."""
    within: Tensor | None
    """Mean of the variances that the samples predict themselves: noise; None if they do not."""
    samples: int

    @property
    def variance(self) -> Tensor:
        """Within + between, as far as there are both."""
        return self.between if self.within is None else self.within + self.between

    @property
    def std(self) -> Tensor:
        return self.variance.sqrt()


Samples = SampleStore | str | Path | Iterable[Sample]
Values = Tensor | tuple[Tensor, Tensor]


@torch.no_grad()
def average(
    store: Samples, model: nn.Module, predict: Callable[[nn.Module], Tensor]
) -> Averaged:
    """p(y|x) = 1/S Σ p(y|x, θ_s). `predict(model)` returns logits, [items, …, classes].

    Log-probabilities are logits, too. For numbers instead of classes see `average_values`.

    The model lends its shape alone: a copy of it, in evaluation mode, holds the samples one after
    the other, so that a sampler that is attached to its embedding keeps what it owes to the rows.
    """
    moments, logits = Moments(), torch.empty(0)
    for member in one_by_one(store, model):
        logits = predict(member)
        refuse_no_logits(logits)
        moments.add(logits.flatten(0, -2))
    if not moments.samples:
        raise LangevinError("an average needs at least one sample, got none")
    result = moments.result()
    return Averaged(
        result.probabilities.view(logits.shape).to(logits),
        result.std.view(logits.shape).to(logits),
        result.total.view(logits.shape[:-1]).to(logits),
        result.epistemic.view(logits.shape[:-1]).to(logits), result.samples,
    )  # fmt: skip


@torch.no_grad()
def average_values(
    store: Samples, model: nn.Module, predict: Callable[[nn.Module], Values]
) -> AveragedValues:
    """E[y|x] = 1/S Σ μ_s, Var[y|x] = 1/S Σ σ²_s + Var_s μ_s: a regression, averaged.

    `predict(model)` returns a tensor μ of any shape, or a pair (μ, σ²) of one shape where the model
    predicts its own variance, as for `torch.nn.GaussianNLLLoss`. Where it does not, the variance is
    that of the mean: add the noise of an observation to it.
    """
    mean = spread = within = torch.empty(0)
    pair, count = False, 0
    for count, member in enumerate(one_by_one(store, model), 1):
        values = predict(member)
        pair = isinstance(values, tuple)
        mu, variance = values if isinstance(values, tuple) else (values, values)
        refuse_no_values(mu, variance, pair)
        if count == 1:
            mean, spread, within = (torch.zeros_like(mu, dtype=torch.float64) for _ in range(3))
        welford_(mean, spread, mu.to(torch.float64, copy=True), count)
        within += (variance - within) / count
    if not count:
        raise LangevinError("an average needs at least one sample, got none")
    between = (spread / max(count - 1, 1)).to(mu)
    return AveragedValues(mean.to(mu), between, within.to(mu) if pair else None, count)


def one_by_one(store: Samples, model: nn.Module) -> Iterator[nn.Module]:
    """A copy of the model with the weights of one sample after the other."""
    copied = copy.deepcopy(model).eval()
    store = SampleStore(store) if isinstance(store, str | Path) else store
    for sample in store.read() if isinstance(store, SampleStore) else store:
        sample.load_into(copied)
        yield copied


def refuse_no_values(mean: object, variance: object, pair: bool) -> None:
    """What is no tensor of numbers, or no variance."""
    if not isinstance(mean, Tensor) or not isinstance(variance, Tensor):
        raise LangevinError(
            f"expected a tensor of values or a pair (mean, variance) of tensors, got "
            f"{type(mean).__name__}; let `predict` return one"
        )
    if pair and (mean.shape != variance.shape or not bool((variance >= 0).all())):
        raise LangevinError(
            f"expected a variance of the shape of the mean, {tuple(mean.shape)}, zero or more, got "
            f"{tuple(variance.shape)} from {float(variance.min()):.4g} on; where the model predicts "
            f"its logarithm, return its exp"
        )


def refuse_no_logits(logits: object) -> None:
    """What a softmax over the last axis would turn into wrong probabilities without a word."""
    if not isinstance(logits, Tensor):
        raise LangevinError(
            f"expected a tensor of logits, got {type(logits).__name__}; let `predict` return one, "
            f"such as the first part of what the model returns"
        )
    refuse_few_classes(logits)
    if not logits.numel():
        return
    if logits.min() >= 0 and (logits.sum(-1) - 1).abs().max() < 1e-4:
        raise LangevinError(
            "expected logits or log-probabilities, got probabilities, as every row sums to 1; "
            "return their logarithm, or what comes before the softmax"
        )


def refuse_few_classes(logits: Tensor) -> None:
    if logits.dim() < 2 or logits.shape[-1] < 2:
        raise LangevinError(
            f"expected logits of [items, …, classes] with two classes or more, got "
            f"{tuple(logits.shape)}; make one logit z of two classes a pair, "
            f"torch.stack([torch.zeros_like(z), z], -1), and one item a batch by [None]; numbers "
            f"that are no classes are averaged by langevin.average_values"
        )
