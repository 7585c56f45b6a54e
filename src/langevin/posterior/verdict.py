"""What the numbers of a diagnosis mean, in plain words, by stated rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .diagnostics import FEWEST, r_hat_limit

HOT = 1.5
"""Measured over injected temperature from which a chain is too hot; its inverse for the opposite."""
SURE = 3.0
"""Standard errors by which a temperature must differ."""
CLIPPED = 0.1
"""Share of clipped gradients above which the temperature means little."""
SATURATED = 0.3
"""Growth of the squared distance (1 for a random walk) below which a chain stays within one region."""


@dataclass(frozen=True)
class Warmth:
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
    r_hat: float
    """Median over the predictions, of all chains."""
    r_hat_within: float
    """The same of each chain alone (of its halves), the largest."""
    ess: float
    """Median over the predictions."""
    growth: float
    temperatures: tuple[Warmth, ...] = ()
    clipped: float = 0.0
    """Share of training steps whose gradient was clipped."""


@dataclass(frozen=True)
class Finding:
    code: str
    words: str


def judge(evidence: Evidence) -> list[Finding]:
    """How it mixes, then what is wrong with its temperature and its gradients, if anything.

    Of these exactly one, the first that holds, with L(n) = 1 + max(0.1, 2/n) the limit on R̂ for sequences of n draws:

    - *too few samples to tell*: fewer than 8 draws of each chain, or predictions that do not vary.
    - *still moving*: the two halves of some chain disagree, R̂ > L(draws/2). Its burn-in was too short.
    - *stuck in one mode*: several chains, each at peace with itself, disagree: R̂ > L(draws/2) over all.
    - *mixing within one mode*: one chain whose distance no longer grows (exponent < 0.3). It covers the region where
      it is; one chain alone cannot tell whether there are others.
    - *mixing*: none of these.

    And any of these: *too hot*: a trusted temperature above 1.5 times the injected one, by more than 3 standard errors.
    *not spread out*: below the injected one divided by 1.5, by as much. *no temperature*: nothing was injected.
    *clipped too often*: more than 10 % of the gradients were clipped.
    """
    findings = [mixing(evidence)]
    if evidence.temperatures and not any(t.injected > 0 for t in evidence.temperatures):
        findings.append(Finding("no temperature", "none was injected: these are snapshots of an optimiser, not draws"))
    findings += [finding for t in evidence.temperatures if (finding := warmth(t))]
    if evidence.clipped > CLIPPED:
        findings.append(Finding(
            "clipped too often",
            f"{evidence.clipped:.0%} of the gradients were clipped, which bends the distribution; "
            f"raise clip_norm or lower lr",
        ))
    return findings


def mixing(e: Evidence) -> Finding:
    """The first of the five that holds."""
    if e.draws < 2 * FEWEST or math.isnan(e.r_hat) or math.isnan(e.r_hat_within):
        return Finding(
            "too few samples to tell",
            f"{e.draws} samples of each chain; {2 * FEWEST} that differ are the least, 30 are better: "
            f"train longer or lower sample_every",
        )
    limit = r_hat_limit(e.draws // 2)
    if e.r_hat_within > limit:
        return Finding(
            "still moving",
            f"the first half of a chain predicts otherwise than the second (R-hat {e.r_hat_within:.2f}, limit "
            f"{limit:.2f}); discard more samples or train longer",
        )
    if e.chains > 1 and e.r_hat > limit:
        return Finding(
            "stuck in one mode",
            f"each chain stays where it is and the {e.chains} chains predict differently (R-hat {e.r_hat:.2f}, limit "
            f"{limit:.2f}); average over chains, or try cycles or a higher temperature",
        )
    samples = e.chains * e.draws
    worth = f"R-hat {e.r_hat:.2f}, limit {limit:.2f}; {samples} samples, worth {min(e.ess, samples):.0f} independent"
    if e.chains == 1 and e.growth < SATURATED:
        return Finding(
            "mixing within one mode",
            f"its predictions have settled ({worth}) and its distance no longer grows; only more chains can tell "
            f"whether there are other modes",
        )
    return Finding("mixing", f"predictions agree ({worth})")


def warmth(t: Warmth) -> Finding | None:
    """Too hot, not spread out, or nothing to say."""
    if not t.trusted or t.injected <= 0 or not math.isfinite(t.measured):
        return None
    said = f"the {t.kind} temperature is {t.measured:.3g} ± {t.error:.2g} where {t.injected:.3g} was injected"
    if t.measured > HOT * t.injected and t.measured - SURE * t.error > t.injected:
        return Finding("too hot", f"{said}; lower lr, use larger batches, or a sampler with a thermostat")
    if t.measured < t.injected / HOT and t.measured + SURE * t.error < t.injected:
        return Finding("not spread out", f"{said}: the chain has not yet gone as far as that allows; train longer")
    return None
