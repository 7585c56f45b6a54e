"""Word probabilities as colours: in the terminal and as a figure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from ..errors import LangevinError
from ..store.samples import choose
from .figures import write_figure
from .terminal import table


def explanation_table(result: dict[str, Any], samples: int) -> Group:
    """A row for each token: probability under some samples, under the average, and the spread over all samples."""
    shown = chosen(result, samples)
    columns = ["token", *(label for label, _ in shown), "average", "± std"]
    rows: list[list[str | Text]] = [
        [Text(visible(token)), *(colour(row[at]) for _, row in shown), colour(result["averaged"][at]),
         f"{result['std'][at]:.4f}"]
        for at, token in enumerate(result["shown"])
    ]
    return table(f"{result['run']}: probability of each token", columns, rows)


def draw_explanation(result: dict[str, Any], path: Path, samples: int) -> None:
    """The figure: samples and average as rows, tokens as columns, log-probability as colour."""
    try:
        import matplotlib
    except ImportError:
        raise LangevinError("figures need matplotlib; install langevin[report]") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    shown = [*chosen(result, samples), ("average", result["averaged"])]
    width = max(4.0, 0.55 * len(result["shown"]))
    figure, axes = pyplot.subplots(figsize=(width, 0.5 * len(shown) + 1.2), layout="constrained")
    image = axes.imshow([[math.log10(max(p, 1e-9)) for p in row] for _, row in shown], cmap="viridis", aspect="auto")
    for y, (_, row) in enumerate(shown):
        for x, p in enumerate(row):
            axes.text(x, y, f"{p:.2g}", ha="center", va="center", fontsize=6, color="white" if p < 0.03 else "black")
    axes.set_xticks(range(len(result["shown"])), [visible(t) for t in result["shown"]], rotation=60, fontsize=8)
    axes.set_yticks(range(len(shown)), [label for label, _ in shown], fontsize=8)
    figure.colorbar(image, label="log₁₀ p")
    write_figure(path, figure)
    pyplot.close(figure)


def chosen(result: dict[str, Any], samples: int) -> list[tuple[str, list[float]]]:
    """Some samples, evenly spread over those there are, with the step (and the chain, if there are several) of each."""
    several = len(set(result["chains"])) > 1
    labels = [f"chain {chain}, step {step}" if several else f"step {step}"
              for chain, step in zip(result["chains"], result["steps"], strict=True)]
    everything = list(zip(labels, result["each"], strict=True))
    return choose(everything, "thinned", min(samples, len(everything)))


def colour(p: float) -> Text:
    """Green where the model expected the token, red where it was surprised."""
    surprise = min(-math.log10(max(p, 1e-6)) / 4, 1.0)
    return Text(f"{p:.4f}", style=f"rgb({round(60 + 180 * surprise)},{round(200 - 140 * surprise)},80)")


def visible(token: str) -> str:
    """A space as a sign, and a dot for a byte whose letter stands before it."""
    return {" ": "␣", "": "·"}.get(token, token)
