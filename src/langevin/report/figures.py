"""Figures on axes that the caller gives, or into a file by `save_figure`.

    save_figure(path, lambda axes: draw_reliability(axes, {"average": bins}))

Colours are those of Okabe and Ito, told apart with any colour vision; lines differ in dashes and
markers too.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import LangevinError
from ..files import write_atomic
from ..posterior.calibration import Reliability
from ..posterior.risk import RiskCoverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
GREY = "#777777"

Line = tuple[Sequence[float], Sequence[float]]
"""What stands at x, and its heights."""


def save_figure(path: Path, *panels: Callable[[Axes], None], size: tuple[float, float] = (5.0, 3.8)) -> None:
    """Draw each panel on fresh axes, side by side, and write them; the suffix says the format,
    `size` is in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LangevinError("figures need matplotlib; install langevin[report]") from None
    figure = Figure(figsize=size, layout="constrained")
    for at, draw in enumerate(panels, 1):
        draw(figure.add_subplot(1, len(panels), at))
    write_figure(path, figure)


def write_figure(path: Path, figure: Figure) -> None:
    """The suffix of the file says the format."""
    refuse_ending(path)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=150)
    write_atomic(path, buffer.getvalue())


def refuse_ending(path: Path) -> None:
    if path.suffix.lower() not in ENDINGS or path.is_dir():
        what = ", a folder" if path.is_dir() else ""
        raise LangevinError(f"expected a file ending in {', '.join(ENDINGS)} for the figure, got {path}{what}")


def refuse_figure(path: Path | None, *, overwrite: bool) -> None:
    """Before the work is done: a file that cannot be drawn into, or may not be."""
    if path is None:
        return
    refuse_ending(path)
    if path.exists() and not overwrite:
        raise LangevinError(f"{path} exists; choose another --figure or allow --overwrite")


def draw_reliability(axes: Axes, methods: Mapping[str, Reliability]) -> None:
    """Accuracy against confidence per bin, for several methods; on the diagonal a model means what
    it says.

    The area of a marker grows with the share of the answers that its bin holds.
    """
    some(methods, "methods")
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", label="calibrated")
    for at, (name, bins) in enumerate(methods.items()):
        x, y = bins.confidence.tolist(), bins.accuracy.tolist()
        axes.plot(x, y, **style(at), linewidth=1.5, label=f"{name} (ECE {bins.ece:.3f})")
        area = 12 + 160 * bins.count.double() / bins.count.sum()
        axes.scatter(x, y, s=area.tolist(), color=colour(at), marker=MARKERS[at % len(MARKERS)], zorder=3)
    axes.set(xlim=(0, 1.02), ylim=(-0.02, 1.02), xlabel="confidence (probability of the answer)",
             ylabel="accuracy (share of right answers)")
    finish(axes)


def draw_risk_coverage(axes: Axes, methods: Mapping[str, RiskCoverage], target: float | None = None) -> None:
    """Error among the accepted answers against the share that is accepted; a target is a horizontal
    line."""
    some(methods, "methods")
    for at, (name, curve) in enumerate(methods.items()):
        axes.plot((100 * curve.coverage).tolist(), (100 * curve.risk).tolist(), **style(at), linewidth=1.5,
                  label=f"{name} (AURC {curve.aurc:.4f})")
    if target is not None:
        axes.axhline(100 * target, color=GREY, linewidth=1, linestyle=":", label=f"target {100 * target:g}%")
    axes.set(xlim=(0, 101), xlabel="coverage (% of answers accepted)", ylabel="risk (% wrong among accepted)")
    axes.set_ylim(bottom=0)
    finish(axes)


def draw_learning_curves(
    axes: Axes, curves: Mapping[str, Line], burn_in: float | None = None, score: str = "nll (nats)"
) -> None:
    """A score against epochs, such as train, valid, test; up to `burn_in` epochs no samples are
    kept (shaded)."""
    draw_lines(axes, curves)
    if burn_in is not None:
        axes.axvspan(0, burn_in, color=GREY, alpha=0.15, linewidth=0)
        axes.axvline(burn_in, color=GREY, linewidth=1, linestyle=":", label=f"end of burn-in ({burn_in:g} epochs)")
    axes.set(xlabel="training time (epochs)", ylabel=score)
    axes.set_xlim(left=0)
    finish(axes)


def draw_collections(
    axes: Axes, collections: Mapping[str, Sequence[float]], score: str = "nll (nats)", single: float | None = None
) -> None:
    """The score of the average of 1, 2, 3, … samples in the forward, backward and thinned
    collections.

    `single` is the score of the last sample alone, drawn as a level.
    """
    draw_lines(axes, {name: (range(1, len(values) + 1), values) for name, values in collections.items()})
    if single is not None:
        axes.axhline(single, color=GREY, linewidth=1, linestyle=":", label="last sample alone")
    axes.set(xlabel="number of samples averaged", ylabel=score)
    axes.locator_params(axis="x", integer=True)
    finish(axes)


def draw_points(
    axes: Axes, points: Tensor, labels: Tensor, names: Sequence[str], scores: Tensor, circled: int = 10
) -> None:
    """Points of the plane coloured by class; the `circled` of the largest score (least certain) are
    ringed, numbered.

    The number is the rank of the uncertainty, 1 the most uncertain, to refer to in a text or table
    beside the figure.
    """
    if points.ndim != 2 or points.shape[1] != 2 or not len(points) == len(labels) == len(scores) > 0:
        raise LangevinError(f"expected points of [items, 2] with a label and a score each, got shapes "
                            f"{list(points.shape)}, {list(labels.shape)}, {list(scores.shape)}")
    if int(labels.min()) < 0 or int(labels.max()) >= len(names):
        raise LangevinError(f"expected labels from 0 to {len(names) - 1}, as there are {len(names)} names, "
                            f"got {int(labels.min())} to {int(labels.max())}")
    for at, name in enumerate(names):
        cluster = points[labels == at]
        axes.scatter(cluster[:, 0].tolist(), cluster[:, 1].tolist(), s=14, color=colour(at), alpha=0.75, linewidth=0,
                     marker=MARKERS[(at + at // len(COLOURS)) % len(MARKERS)], label=name)
    most = scores.argsort(descending=True, stable=True)[:circled]
    ringed = points[most]
    axes.scatter(ringed[:, 0].tolist(), ringed[:, 1].tolist(), s=90, facecolors="none", edgecolors="black",
                 linewidth=1.2, label=f"{len(most)} least certain")
    for rank, (x, y) in enumerate(ringed.tolist(), start=1):
        axes.annotate(str(rank), (x, y), xytext=(5, 5), textcoords="offset points", fontsize=7)
    axes.set(xlabel="first coordinate (no unit)", ylabel="second coordinate (no unit)", xticks=[], yticks=[])
    finish(axes)
    # never over the points
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def embed_2d(features: Tensor) -> Tensor:
    """t-SNE (van der Maaten & Hinton 2008) of [items, dimensions] to [items, 2], started from
    principal components.

    Its perplexity is 30, or a third of the items where there are few. Distances between groups mean
    little.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise LangevinError("t-SNE needs scikit-learn; install langevin[report]") from None
    if features.ndim != 2 or len(features) < 4 or features.shape[1] < 2 or not features.isfinite().all():
        raise LangevinError(f"expected finite features of at least 4 items and 2 dimensions, "
                            f"got shape {list(features.shape)}")
    reach = min(30.0, (len(features) - 1) / 3)
    projection = TSNE(n_components=2, init="pca", perplexity=reach, random_state=0)
    return torch.from_numpy(projection.fit_transform(features.detach().cpu().float().numpy()))


def draw_lines(axes: Axes, curves: Mapping[str, Line]) -> None:
    """Named lines, each with its own colour, dashes and, where there is room, markers."""
    some(curves, "curves")
    for at, (name, (x, y)) in enumerate(curves.items()):
        if len(x) != len(y):
            raise LangevinError(f"expected as many heights as places on the curve {name!r}, got {len(y)} and {len(x)}")
        marker = MARKERS[at % len(MARKERS)] if len(x) <= 40 else None
        axes.plot(list(x), list(y), **style(at), marker=marker, markersize=4, linewidth=1.5, label=name)


def colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]


def style(at: int) -> dict[str, Any]:
    return {"color": colour(at), "linestyle": DASHES[at % len(DASHES)]}


def some(given: Mapping[str, object], what: str) -> None:
    if not given:
        raise LangevinError(f"expected at least one of the {what} to draw, got none")


def finish(axes: Axes) -> None:
    """What all figures share: a faint grid behind the data, a small legend, no box."""
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
