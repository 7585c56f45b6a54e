"""What a diagnosis says, as records: how samples mix, how far they go, how warm they are."""

from __future__ import annotations

from dataclasses import dataclass

from ..posterior.scores import Result
from ..posterior.verdict import Finding, TemperatureReading


@dataclass(frozen=True)
class Mixing(Result):
    """How one prediction went over the samples of all chains; NaN where that means nothing."""

    mean: float
    std: float
    r_hat: float
    ess: float
    time: float
    """Correlation time, in samples."""


@dataclass(frozen=True)
class LayerMixing(Result):
    """Random projections of the weights of a layer, the worst of them."""

    size: int
    distance: float
    """Between consecutive samples, over the norm."""
    r_hat: float
    ess: float
    temperature: float
    temperature_error: float


@dataclass(frozen=True)
class Diagnosis(Result):
    """Whether samples are draws of one distribution; NaN where samples cannot tell."""

    task: str
    runs: tuple[str, ...]
    split: str
    sampler: str
    chains: int
    draws: int
    """Of each chain."""
    discarded: int
    gradient_batches: int
    """For the temperature of each sample; those of an epoch are all."""
    epoch_batches: int
    predictions: dict[str, Mixing]
    """The held-out log-likelihood, then single outcomes."""
    layers: dict[str, LayerMixing]
    distance_growth: float
    clipped: float
    """Share of the steps whose gradient was clipped."""
    temperatures: tuple[TemperatureReading, ...]
    verdict: tuple[Finding, ...]
    autocorrelation: tuple[float, ...] | None = None
    """Of the held-out log-likelihood at lags 0, 1, …; this and what follows: None for no chain."""
    correlation_time: float | None = None
    thinning: int | None = None
    trend: float | None = None
    """p value of a monotone drift."""
    r_hat: float | None = None
    r_hat_within: float | None = None
    r_hat_limit: float | None = None
    ess: float | None = None
    skipped: tuple[str, ...] = ()
