"""A diagnosis in the terminal: tables of mixing, layers and temperatures, and the verdict."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from .terminal import table

WORST = 6
"""Lines of predictions."""
GOOD = ("mixing", "mixing within one mode", "averaged trajectory, not a chain")
DOUBTS = {
    "configurational": "not trusted, no more than a hint: a flat prior does not confine the weights",
    "kinetic": "not trusted: rate or temperature moved while the momenta were made",
}
"""Why a temperature does not decide."""


def diagnosis_page(result: dict[str, Any]) -> Group:
    """Everything, the verdict last, where the eye is when the command ends."""
    return Group(mixing_table(result), layers_table(result), *temperature_table(result), *verdict_lines(result))


def mixing_table(result: dict[str, Any]) -> Group:
    """The held-out log-likelihood, then the predictions that agree least."""
    first, *probes = result["function"].items()
    worst = sorted(probes, key=lambda item: -(item[1]["r_hat"] or 0))[:WORST]
    title = f"{', '.join(result['runs'])}: {result['chains']} × {result['draws']} samples on {result['split']}"
    return table(title, ("prediction", "mean", "std", "R-hat", "effective samples", "correlation time"), [
        (name, figure(n["mean"]), figure(n["std"]), figure(n["r_hat"], 3), figure(n["ess"], 3), figure(n["time"], 3))
        for name, n in (first, *worst)
    ])


def layers_table(result: dict[str, Any]) -> Group:
    """Each layer: distance between consecutive samples, worst mixing of its projections, temperature."""
    columns = ("layer", "weights", "distance / norm", "R-hat", "effective samples", "temperature")
    return table("random projections of the weights (worst of each layer)", columns, [
        (name, str(n["size"]), figure(n["distance"], 3), figure(n["r_hat"], 3), figure(n["ess"], 3),
         with_error(n["temperature"], n["temperature_error"]))
        for name, n in result["layers"].items()
    ])


def temperature_table(result: dict[str, Any]) -> list[Group]:
    if not result["temperatures"]:
        return []
    rows = [
        (t["kind"], figure(t["injected"], 3), with_error(t["measured"], t["error"]),
         doubt(t))
        for t in result["temperatures"]
    ]
    batches = result["gradient_batches"]
    return [table(f"temperature (gradients of {batches} training batches)", ("", "injected", "measured", ""), rows)]


def doubt(reading: dict[str, Any]) -> str:
    """Why a temperature does not decide, or what one below zero means."""
    if not reading["trusted"]:
        return DOUBTS[reading["kind"]]
    below = reading["measured"] is not None and reading["measured"] < 0
    return "below zero: the gradients still push the weights outwards" if below else ""


def verdict_lines(result: dict[str, Any]) -> list[Text]:
    """Thinning, where there is a chain, then one line for each finding."""
    lines = []
    if result["thinning"] is not None:
        lags = " ".join(figure(value, 2) for value in result["autocorrelation"][1:6])
        correlations = f"autocorrelation of the held-out log-likelihood at lags 1, 2, …: {lags}"
        nth = result["thinning"]
        every = "none, keep them all" if nth == 1 else f"keep every {ordinal(nth)} sample"
        lines += [Text(correlations), Text(f"suggested thinning: {every}")]
    for finding in result["verdict"]:
        style = "bold green" if finding["code"] in GOOD else "bold yellow"
        lines.append(Text.assemble((f"{finding['code']}: ", style), finding["words"]))
    return lines


def figure(value: float | None, digits: int = 4) -> str:
    """A number in so many digits; a dash where there is none."""
    return "—" if value is None else "∞" if value >= 1e300 else f"{value:.{digits}g}"


def with_error(value: float | None, error: float | None) -> str:
    return "—" if value is None else f"{value:.3g} ± {figure(error, 2)}"


def ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
