"""Figures are drawn from recorded numbers and run folders."""

import json
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.predict.load import open_posterior
from paper.figures import FIGURES, draw_figure, errors_along
from paper.runs import missing_runs, overview
from paper.targets import TARGETS

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG"


def test_every_figure_of_the_paper_can_be_drawn():
    assert set(FIGURES) == {name for name, target in TARGETS.items() if target.figure}


def test_samples_come_from_recorded_numbers_and_are_drawn_again_without_them(tmp_path):
    test = {"curve": {how: [4.9, 4.8, 4.7] for how in ("forward", "backward", "thinned")},
            "each": [{"perplexity": p} for p in (120.0, 118.0, 119.0)]}
    numbers = tmp_path / "ptb-small-random-sgld.json"
    numbers.write_text(json.dumps({"test": test}))
    picture = draw_figure("samples", tmp_path / "runs", tmp_path)
    assert picture == tmp_path / "figures" / "samples.png"
    assert picture.read_bytes().startswith(PNG)
    assert json.loads(picture.with_suffix(".json").read_text())["taken_from"] == {"ptb-small-random-sgld": {}}
    numbers.unlink()
    picture.unlink()
    assert draw_figure("samples", tmp_path / "runs", tmp_path).read_bytes().startswith(PNG)


def test_a_figure_whose_numbers_are_kept_needs_no_run(paper, tmp_path):
    told = {"run": "x", "chains": [0, 0], "steps": [1, 2], "tokens": ["the", "snow"],
            "each": [[0.1, 0.2], [0.3, 0.4]], "averaged": [0.2, 0.3], "std": [0.1, 0.1]}
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "words.json").write_text(json.dumps(told))
    code, _, messages = paper("reproduce", "words", "--results", tmp_path, "--out", tmp_path / "runs")
    assert (code, "drawn" in messages) == (0, True)
    assert not (tmp_path / "runs").exists()
    listed = {o["target"]: o for o in json.loads(paper("reproduce", "--results", tmp_path, "--json")[1])}
    assert (listed["words"]["state"], listed["captions"]["recorded"]) == ("done", 0)


def test_recorded_numbers_do_not_make_a_figure_that_needs_the_samples(tmp_path):
    (tmp_path / "ptb-small-successive-sgld.json").write_text('{"recipe": {"run": {}}}')
    target = TARGETS["words"]
    assert len(missing_runs(target, target.runs(), tmp_path / "runs", tmp_path)) == 1
    assert overview(target, tmp_path / "runs", tmp_path)["recorded"] == 0


def test_numbers_that_are_missing_are_named(tmp_path):
    with pytest.raises(LangevinError, match="expected recorded numbers of ptb-small-random-sgld"):
        draw_figure("samples", tmp_path, tmp_path)


def test_the_figures_of_the_page_are_there():
    for name in FIGURES:
        kept = ROOT / "results" / "figures" / f"{name}.json"
        assert kept.is_file() == kept.with_suffix(".png").is_file()


def test_errors_along_a_run_are_per_cent(classifier_run):
    told = errors_along(classifier_run)
    assert told["epochs"] == [1.5, 2.0, 2.5, 3.0]
    assert set(told["curves"]) == {"train", "valid", "test"}
    assert told["shown"] == "average"
    plain = open_posterior(classifier_run).evaluate()
    assert told["curves"]["test"]["single"] == [100 * one.scores.error for one in plain.each]
    assert told["curves"]["test"]["average"][-1] == pytest.approx(100 * plain.averaged.error)
