"""Figures are drawn from recorded numbers and run folders."""

import json

import pytest

from langevin.errors import LangevinError
from langevin.reproduce.figures import FIGURES, draw_figure
from langevin.reproduce.targets import TARGETS

PNG = b"\x89PNG"


def test_every_figure_of_the_paper_can_be_drawn():
    assert set(FIGURES) == {name for name, target in TARGETS.items() if target.figure}


def test_samples_come_from_recorded_numbers(tmp_path):
    test = {"curve": {how: [4.9, 4.8, 4.7] for how in ("forward", "backward", "thinned")},
            "each": [{"perplexity": p} for p in (120.0, 118.0, 119.0)]}
    (tmp_path / "ptb-small-random-sgld.json").write_text(json.dumps({"test": test}))
    assert draw_figure("samples", tmp_path, tmp_path, tmp_path / "samples.png").read_bytes().startswith(PNG)


def test_numbers_that_are_missing_are_named(tmp_path):
    with pytest.raises(LangevinError, match="expected recorded numbers of ptb-small-random-sgld"):
        draw_figure("samples", tmp_path, tmp_path, tmp_path / "samples.png")
