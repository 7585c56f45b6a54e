"""A diagnosis: tables of mixing, layers and temperatures, and the verdict in words."""

from __future__ import annotations

import math

from rich.console import Group
from rich.text import Text

from ..posterior.verdict import TemperatureReading
from ..predict.mixing import Diagnosis
from .tables import ResultTable
from .terminal import text_table

WORST = 6
"""Lines of predictions."""
GOOD = ("mixing", "mixing within one mode", "averaged trajectory, not a chain")
DOUBTS = {
    "configurational": "not trusted, a mere hint: a flat prior does not confine the weights",
    "kinetic": "not trusted: rate or temperature moved while the momenta were made",
}
"""Why a temperature does not decide."""


def diagnosis_page(found: Diagnosis) -> Group:
    """Everything, the verdict last, where the eye is when the command ends."""
    lines = [Text(line) for line in thinning_in_words(found)]
    for finding in found.verdict:
        style = "bold green" if finding.code in GOOD else "bold yellow"
        lines.append(Text.assemble((f"{finding.code}: ", style), finding.words))
    return Group(*map(text_table, diagnosis_tables(found)), *lines)


def diagnosis_tables(found: Diagnosis) -> list[ResultTable]:
    """Of predictions, of layers and, where gradients were taken, of temperatures."""
    tables = [mixing_table(found), layers_table(found)]
    return [*tables, temperature_table(found)] if found.temperatures else tables


def mixing_table(found: Diagnosis) -> ResultTable:
    """The held-out log-likelihood, then the predictions that agree least."""
    first, *probes = found.predictions.items()
    worst = sorted(probes, key=lambda item: -none_last(item[1].r_hat))[:WORST]
    return ResultTable(
        f"{', '.join(found.runs)}: {found.chains} × {found.draws} samples on {found.split}, "
        f"log-probabilities in nats",
        ("prediction", "mean", "std", "R-hat", "effective samples", "correlation time"),
        tuple((name, rounded(n.mean), rounded(n.std), rounded(n.r_hat, 3), rounded(n.ess, 3),
               rounded(n.time, 3)) for name, n in (first, *worst)), named=True,
    )  # fmt: skip


def layers_table(found: Diagnosis) -> ResultTable:
    """Each layer: how far from sample to sample, worst mixing of its projections, temperature."""
    return ResultTable(
        "random projections of the weights (worst of each layer)",
        ("layer", "weights", "distance / norm", "R-hat", "effective samples", "temperature"),
        tuple((name, f"{n.size:,}", rounded(n.distance, 3), rounded(n.r_hat, 3), rounded(n.ess, 3),
               with_error(n.temperature, n.temperature_error))
              for name, n in found.layers.items()), named=True,
    )  # fmt: skip


def temperature_table(found: Diagnosis) -> ResultTable:
    every = found.gradient_batches >= found.epoch_batches
    batches = "all" if every else found.gradient_batches
    return ResultTable(
        f"temperature (gradients of {batches} training batches)",
        ("measured as", "injected", "measured", ""),
        tuple((t.kind, rounded(t.injected, 3), with_error(t.measured, t.error), doubt(t))
              for t in found.temperatures), words=True,
    )  # fmt: skip


def doubt(reading: TemperatureReading) -> str:
    """Why a temperature does not decide, or what one below zero means."""
    if not reading.trusted:
        return DOUBTS[reading.kind]
    return "below zero: the gradients still push the weights outwards" if reading.measured < 0 else ""


def thinning_in_words(found: Diagnosis) -> list[str]:
    """Of a chain: how long samples remember, and which to keep."""
    if found.thinning is None or found.autocorrelation is None:
        return []
    lags = " ".join(rounded(value, 2) for value in found.autocorrelation[1:6])
    nth = found.thinning
    every = "none, keep them all" if nth == 1 else f"keep every {ordinal(nth)} sample"
    return [f"autocorrelation of the held-out log-likelihood at lags 1, 2, …: {lags}",
            f"suggested thinning: {every}"]  # fmt: skip


def none_last(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def rounded(value: float, digits: int = 4) -> str:
    """A number in so many digits; a dash where there is none."""
    return "—" if math.isnan(value) else "∞" if math.isinf(value) else f"{value:.{digits}g}"


def with_error(value: float, error: float) -> str:
    return "—" if math.isnan(value) else f"{value:.3g} ± {rounded(error, 2)}"


def ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
