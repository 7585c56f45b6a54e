"""Every figure is drawn, saved and read back as an image, and its axes carry the numbers that were
given."""

import subprocess
import sys

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.image import imread

from langevin import LangevinError
from langevin.posterior.calibration import reliability
from langevin.posterior.risk import risk_coverage
from langevin.report.figures import (
    COLOURS,
    draw_collections,
    draw_learning_curves,
    draw_points,
    draw_reliability,
    draw_risk_coverage,
    embed_2d,
    refuse_figure,
    save_figure,
)


def answers(seed=0, items=400):
    g = torch.Generator().manual_seed(seed)
    confidence = 0.4 + 0.6 * torch.rand(items, generator=g)
    return confidence, torch.rand(items, generator=g) < confidence


BINS = {"average": reliability(*answers(0)), "last sample": reliability(*answers(1))}
RISKS = {name: risk_coverage(1 - c, right) for name, (c, right) in {"entropy": answers(0), "std": answers(1)}.items()}
CURVES = {"train": (range(1, 9), [3 / n for n in range(1, 9)]), "valid": (range(1, 9), [2.0] * 8),
          "average": ([3.0, 4.0], [1.9, 1.8])}
COLLECTIONS = {"forward": [3.0, 2.5, 2.2], "backward": [2.0, 1.9, 2.2], "thinned": [2.0, 2.1, 2.2]}
POINTS = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
GROUP, UNCERTAIN = torch.arange(60) % 3, torch.arange(60) / 60

FIGURES = {
    "reliability": lambda axes: draw_reliability(axes, BINS),
    "risk": lambda axes: draw_risk_coverage(axes, RISKS, target=0.05),
    "learning": lambda axes: draw_learning_curves(axes, CURVES, burn_in=2, score="perplexity"),
    "collections": lambda axes: draw_collections(axes, COLLECTIONS, score="perplexity", single=2.3),
    "points": lambda axes: draw_points(axes, POINTS, GROUP, ["who", "where", "why"], UNCERTAIN, circled=5),
}


def drawn(name):
    axes = Figure().add_subplot()
    FIGURES[name](axes)
    return axes


def lines(axes):
    """The lines of the axes by the first words of their label."""
    return {line.get_label().split(" (")[0]: (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}


@pytest.mark.parametrize("name", FIGURES)
def test_saved_as_an_image(name, tmp_path):
    path = tmp_path / f"{name}.png"
    save_figure(path, FIGURES[name])
    height, width, _ = imread(path).shape
    assert (width, height) == (750, 570)
    assert float(imread(path)[..., :3].std()) > 0.03  # something is drawn on the white


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_labelled_and_have_a_legend(name):
    axes = drawn(name)
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert axes.get_legend().get_texts()


def test_reliability_carries_its_bins():
    found = lines(drawn("reliability"))
    assert found["calibrated"] == ([0, 1], [0, 1])
    for name, bins in BINS.items():
        assert found[name] == (bins.confidence.tolist(), bins.accuracy.tolist())


def test_risk_coverage_in_per_cent_with_the_target():
    found = lines(drawn("risk"))
    for name, curve in RISKS.items():
        assert found[name] == ((100 * curve.coverage).tolist(), (100 * curve.risk).tolist())
    assert found["target 5%"][1] == [5, 5]


def test_learning_curves_with_burn_in():
    axes = drawn("learning")
    found = lines(axes)
    for name, (x, y) in CURVES.items():
        assert found[name] == (list(x), list(y))
    assert found["end of burn-in"][0] == [2, 2]
    assert axes.get_ylabel() == "perplexity"
    assert "epochs" in axes.get_xlabel()


def test_collections_count_from_one():
    found = lines(drawn("collections"))
    for name, values in COLLECTIONS.items():
        assert found[name] == ([1, 2, 3], values)
    assert found["last sample alone"][1] == [2.3, 2.3]


def test_points_by_class_and_the_least_certain_ringed():
    axes = drawn("points")
    groups = {str(group.get_label()): torch.tensor(group.get_offsets()) for group in axes.collections}
    for at, name in enumerate(["who", "where", "why"]):
        torch.testing.assert_close(groups[name].float(), POINTS[torch.eq(GROUP, at)])
    torch.testing.assert_close(groups["5 least certain"].float(), POINTS[[59, 58, 57, 56, 55]])
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3", "4", "5"]


def test_colours_differ():
    axes = drawn("collections")
    assert [line.get_color() for line in axes.lines[:3]] == list(COLOURS[:3])
    assert len({line.get_linestyle() for line in axes.lines[:3]}) == 3


def test_embedding_keeps_groups_apart_and_is_reproducible():
    """Three well separated groups in 20 dimensions: every point has its nearest neighbour in its
    own group."""
    g = torch.Generator().manual_seed(0)
    group = torch.arange(45) % 3
    features = 20 * torch.nn.functional.one_hot(group, 20) + torch.randn(45, 20, generator=g)
    plane = embed_2d(features)
    assert plane.shape == (45, 2)
    apart = torch.cdist(plane, plane).fill_diagonal_(float("inf"))
    assert torch.equal(group[apart.argmin(1)], group)
    assert torch.equal(plane, embed_2d(features))


@pytest.mark.parametrize(("call", "message"), [
    (lambda axes: draw_reliability(axes, {}), "at least one of the methods"),
    (lambda axes: draw_learning_curves(axes, {"train": ([1, 2], [3.0])}), "1 and 2"),
    (lambda axes: draw_points(axes, POINTS[:, :1], GROUP, ["a"], UNCERTAIN), r"\[items, 2\]"),
    (lambda axes: draw_points(axes, POINTS, GROUP, ["a", "b"], UNCERTAIN), "there are 2 names"),
    (lambda _: embed_2d(torch.zeros(3, 5)), "at least 4 items"),
])
def test_bad_input(call, message):
    with pytest.raises(LangevinError, match=message):
        call(Figure().add_subplot())


def test_a_file_that_cannot_be_drawn_into(tmp_path):
    (tmp_path / "folder.png").mkdir()
    for name in ("figure.xyz", "figure", "folder.png"):
        with pytest.raises(LangevinError, match=r"expected a file ending in \.png"):
            save_figure(tmp_path / name, FIGURES["learning"])
    save_figure(tmp_path / "new" / "figure.png", FIGURES["learning"])
    assert (tmp_path / "new" / "figure.png").is_file()


def test_a_figure_is_not_replaced_unasked(tmp_path):
    (tmp_path / "old.svg").write_text("precious")
    with pytest.raises(LangevinError, match=r"old\.svg exists; choose another --figure or allow --overwrite"):
        refuse_figure(tmp_path / "old.svg", overwrite=False)
    refuse_figure(tmp_path / "old.svg", overwrite=True)
    refuse_figure(tmp_path / "new.svg", overwrite=False)
    refuse_figure(None, overwrite=False)


def test_what_is_said_without_matplotlib_and_scikit_learn(tmp_path):
    """In a process where neither can be imported, the module loads and says what to install."""
    code = f"""
import sys
sys.modules["matplotlib"] = sys.modules["sklearn"] = None
import torch
from pathlib import Path
from langevin.report.figures import embed_2d, save_figure
path = Path({str(tmp_path / "f.png")!r})
for call in (lambda: save_figure(path, print), lambda: embed_2d(torch.zeros(9, 3))):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert made.stdout.splitlines() == ["LangevinError figures need matplotlib; install langevin[report]",
                                        "LangevinError t-SNE needs scikit-learn; install langevin[report]"]
