"""What the numbers of a diagnosis mean, in plain words, by stated rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .diagnostics import FEWEST, draws_needed, r_hat_limit
from .trend import ALARM

HOT = 1.5
"""Measured over injected temperature from which a chain is too hot; its inverse for the
opposite."""
SURE = 3.0
"""Standard errors by which a temperature must differ."""
CLIPPED = 0.1
"""Share of clipped gradients above which the temperature means little."""
SATURATED = 0.3
"""Growth of the squared distance (1 for a random walk) below which a chain stays in one region."""
LOOSE = 1.1
"""Limit on R̂ above which agreement means nothing (the limit of Gelman & Rubin 1992)."""


@dataclass(frozen=True)
class TemperatureReading:
    """One way to measure the temperature, against what was injected. Only `trusted` ones decide."""

    kind: str
    injected: float
    measured: float
    error: float
    trusted: bool = True


@dataclass(frozen=True)
class Evidence:
    """What the verdict rests on."""

    chains: int
    draws: int
    """Of each chain."""
    predictions: int
    """How many were followed: the held-out log-likelihood and single outcomes."""
    r_hat: float
    """The largest of the predictions."""
    r_hat_within: float
    """The largest of the predictions of each chain alone (of its halves)."""
    trend: float
    """p value of a monotone drift within the chains."""
    ess: float
    """Median over the predictions."""
    time: float
    """Correlation time within chains, median over the predictions."""
    growth: float
    temperatures: tuple[TemperatureReading, ...] = ()
    clipped: float = 0.0
    """Share of training steps whose gradient was clipped."""
    is_chain: bool = True
    """Whether the samples are draws: not running means of weights, and not at temperature 0."""


@dataclass(frozen=True)
class Finding:
    code: str
    words: str


def judge(evidence: Evidence) -> list[Finding]:
    """How it mixes, then what is wrong with its temperature and its gradients, if anything.

    Of these exactly one, the first that holds, with L the `r_hat_limit` for so many chains, draws
    and predictions, and L_τ the same for draws of their correlation time:

    - *averaged trajectory, not a chain*: samples that are running means, or nothing was injected.
    - *too few samples to tell*: fewer than 8 draws of each chain, or predictions that do not vary.
    - *still moving*: predictions drift over the draws (p ≤ 1 %), or R̂ > L_τ and the two halves of
      some chain disagree by themselves. The burn-in was too short.
    - *stuck in one mode*: chains, each at peace with itself, disagree: R̂ > L_τ over all.
    - *too few samples to tell*: R̂ between L and L_τ, slow chains or chains that disagree; or
      R̂ ≤ L, but L > 1.1: so few draws would hardly show it if they disagreed.
    - *mixing within one mode*: one chain whose distance no longer grows (exponent < 0.3). It covers
      the region where it is; one chain alone cannot tell whether there are others.
    - *mixing*: none of these.

    And any of these: *too hot*: a trusted temperature above 1.5 times the injected one, by more
    than 3 standard errors. *not spread out*: below the injected one divided by 1.5, by as much.
    *clipped too often*: more than 10 % of the gradients were clipped.
    """
    findings = [mixing(evidence)]
    if evidence.is_chain:
        readings = map(temperature, evidence.temperatures)
        findings += [finding for finding in readings if finding]
    if evidence.clipped > CLIPPED:
        findings.append(Finding(
            "clipped too often",
            f"{evidence.clipped:.0%} of the gradients were clipped, which bends the distribution; "
            f"raise clip_norm or lower lr",
        ))  # fmt: skip
    return findings


def mixing(e: Evidence) -> Finding:
    """The first of the seven that holds."""
    if not e.is_chain:
        return Finding(
            "averaged trajectory, not a chain",
            "the samples are running means of the weights, or no temperature was injected: points "
            "along a training run, whose average can predict well, but no draws, so that R-hat and "
            "effective sample size mean nothing here; judge them by their held-out scores",
        )
    if e.draws < 2 * FEWEST or any(map(math.isnan, (e.r_hat, e.r_hat_within, e.time))):
        return too_few(
            e, f"{e.draws} samples of each chain; {2 * FEWEST} that differ are the least"
        )
    if e.trend <= ALARM:
        return Finding(
            "still moving",
            f"predictions drift from the first sample to the last (p = {e.trend:.1g} of a trend by "
            f"chance); discard more samples or train longer",
        )
    limit = r_hat_limit(e.chains, e.draws, e.predictions)
    slow = r_hat_limit(e.chains, e.draws, e.predictions, e.time)
    shown = f"R-hat {e.r_hat:.2f}, limit {limit:.2f}"
    if e.r_hat > slow:
        return disagreeing(e, shown)
    if e.r_hat > limit:
        return too_few(
            e, f"{shown}: the samples depend on each other (correlation time {e.time:.1f}), so "
            f"that slow chains look like chains that disagree"
        )  # fmt: skip
    if limit > LOOSE:
        return too_few(e, f"{shown}: chains that disagree would hardly go beyond that")
    return agreeing(e, shown)


def disagreeing(e: Evidence, shown: str) -> Finding:
    """R̂ is beyond all limits: within some chain, or between them."""
    within = r_hat_limit(1, e.draws, e.chains * e.predictions, e.time)
    if e.chains == 1 or e.r_hat_within > within:
        return Finding(
            "still moving",
            f"the first half of a chain predicts otherwise than the second ({shown}); discard more "
            f"samples or train longer",
        )
    return Finding(
        "stuck in one mode",
        f"each chain stays where it is and the {e.chains} chains predict differently ({shown}); "
        f"average over chains, or try cycles or a higher temperature",
    )


def agreeing(e: Evidence, shown: str) -> Finding:
    samples = e.chains * e.draws
    worth = f"{shown}; {samples} samples, worth {min(e.ess, samples):.0f} independent"
    if e.chains == 1 and e.growth < SATURATED:
        return Finding(
            "mixing within one mode",
            f"its predictions have settled ({worth}) and its distance no longer grows; only more "
            f"chains can tell whether there are other modes",
        )
    return Finding("mixing", f"predictions agree ({worth})")


def too_few(e: Evidence, reason: str) -> Finding:
    """With how many it could be told, of draws as correlated as these."""
    needed = draws_needed(e.chains, e.predictions, LOOSE)
    time = 1.0 if math.isnan(e.time) else e.time
    return Finding(
        "too few samples to tell",
        f"{reason}; about {math.ceil(needed * time)} of each chain could tell: train longer, lower "
        f"sample_every or add chains",
    )


def temperature(t: TemperatureReading) -> Finding | None:
    """Too hot, not spread out, or nothing to say."""
    if not t.trusted or t.injected <= 0 or not math.isfinite(t.measured):
        return None
    shown = (
        f"the {t.kind} temperature is {t.measured:.3g} ± {t.error:.2g} where {t.injected:.3g} was "
        f"injected"
    )
    if t.measured > HOT * t.injected and t.measured - SURE * t.error > t.injected:
        return Finding(
            "too hot", f"{shown}; lower lr, use larger batches, or a sampler with a thermostat"
        )
    if t.measured < t.injected / HOT and t.measured + SURE * t.error < t.injected:
        if t.measured < 0:
            return Finding(
                "not spread out",
                f"{shown}: below zero, which no settled chain has: the gradients still push the "
                f"weights outwards, so that it is on its way; train longer or discard more samples",
            )
        return Finding(
            "not spread out",
            f"{shown}: the chain has not yet gone as far as that allows; train longer",
        )
    return None
