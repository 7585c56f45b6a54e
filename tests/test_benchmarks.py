"""The benchmark runs from end to end, its arithmetic is right, and the page shows the numbers that
were measured."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import captioning, epochs, reading
from benchmarks.report import between_markers, markdown
from benchmarks.shapes import SHAPES, network
from benchmarks.timing import Contender, fastest, interleave, ratio, summary
from benchmarks.verdicts import by_parts, row, verdict
from langevin.data.features import read_features
from langevin.predict.captioning import CaptionPosterior
from langevin.predict.load import open_as
from langevin.training.session import start
from tests.tiny_captions import tiny_recipe, write_tiny

ROOT = Path(__file__).parents[1]
KEYS = {
    "quick", "peers", "rounds", "threads", "machine", "versions", "commit", "minutes", "ratios", "ceilings", "steps",
    "updates", "rows", "imports", "startup", "epochs",
}  # fmt: skip


def test_quick_run_without_peers(tmp_path):
    shutil.copy(ROOT / "docs" / "speed.md", tmp_path)
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--no-peers", "--json", "--docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert set(results) == KEYS
    assert results["peers"] == "left out"
    for line in results["ratios"]:
        of_peers = line["what"].startswith(("posteriors", "blackjax"))
        assert line["verdict"] == "not measured" if of_peers else line["ratio"] > 0, line
    assert {"SGLD", "SGLD plain", "SGLD lazy rows", "Santa", "torch SGD fused"} <= set(results["steps"]["PTB-small"])
    assert between_markers((tmp_path / "speed.md").read_text()) == markdown(results)
    assert (tmp_path / "speed.png").stat().st_size < 100_000


def test_quick_softmax(tmp_path):
    command = [sys.executable, "-m", "benchmarks.softmax", "--quick", "--rounds", "2", "--json", str(tmp_path / "told")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "told").read_text())
    assert told == json.loads(done.stdout)
    assert {"PTB-small, alone, float32", "PTB-medium, training step, float32"} <= set(told["cases"])
    assert all(case["torch_to_ours"]["ratio"] > 0 for case in told["cases"].values())


def test_page_and_results_agree():
    results = json.loads((ROOT / "results" / "bench.json").read_text())
    assert set(results) == KEYS
    assert not results["quick"]
    assert between_markers((ROOT / "docs" / "speed.md").read_text()) == markdown(results), "run make bench"
    assert (ROOT / "docs" / "speed.png").stat().st_size < 100_000


@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
def test_shapes_count_their_weights(shape):
    assert sum(weight.numel() for weight in network(shape).parameters()) == shape.weights


def test_flops_of_a_step_by_hand():
    """PTB-small: 640 tokens, 6 operations per weight of the two layers (2 · 4·200·400) and the
    output (200·10000)."""
    assert SHAPES["PTB-small"].flops == 640 * 6 * (2 * 4 * 200 * 400 + 200 * 10_000)


def test_every_contender_runs_in_every_round_of_its_own():
    calls = {"often": 0, "seldom": 0}

    def turn(name):
        def run(steps):
            calls[name] += steps
            return 0.5 * steps

        return run

    contenders = [Contender("often", turn("often")), Contender("seldom", turn("seldom"), 3)]
    measured = interleave(contenders, rounds=4, seconds=1)
    assert measured["often"]["rounds"] == [0.5] * 4
    assert measured["seldom"]["rounds"] == [0.5, None, None, 0.5]
    # calibration, then a warm step and two timed ones
    assert calls == {"often": 3 + 4 * 3, "seldom": 3 + 2 * 3}


def test_a_contender_that_cannot_start_is_left_out():
    def fail(steps):
        raise RuntimeError("no such package")

    said = []
    measured = interleave([Contender("a", fail), Contender("b", float)], rounds=1, seconds=1, say=said.append)
    assert list(measured) == ["b"]
    assert said[0] == "a is left out: no such package"


def test_ratio_is_of_medians_and_its_spread_of_rounds():
    measured = ratio(summary([1.0, 2.0, 6.0]), summary([1.0, 1.0, 2.0]))
    assert measured == {"ratio": 2.0, "q1": 1.5, "q3": 2.5}


def test_we_compare_with_the_faster_form():
    measured = {name: summary([time]) for name, time in {"torch SGD": 2.0, "torch SGD fused": 1.0, "SGLD": 1.5}.items()}
    assert fastest(measured, ["torch SGD", "torch SGD fused", "absent"]) == "torch SGD fused"
    line = row("SGLD : torch SGD", measured, "SGLD", "torch SGD", at_most=(1.08, None))
    assert (line["ratio"], line["verdict"]) == (1.5, "missed")


def test_by_parts_has_one_gradient_time_and_the_faster_update():
    updates = {"torch SGD": (9.0, 2.0), "torch SGD fused": (11.0, 1.0), "SGLD": (10.0, 2.0)}
    measured = {n: summary([g + u]) | {"gradient": g, "update": u} for n, (g, u) in updates.items()}
    assert by_parts(measured, "SGLD", "torch SGD") == 12 / 11
    assert by_parts(measured | {"SGLD lazy rows": summary([1.0])}, "SGLD lazy rows", "torch SGD") is None


@pytest.mark.parametrize(
    ("value", "sign", "expected"),
    [(1.09, "≤", "missed"), (1.08, "≤", "met"), (1.04, "≤", "goal"), (1.0, "≥", "missed"), (1.05, "≥", "met")],
)
def test_verdicts(value, sign, expected):
    must, goal = (1.08, 1.04) if sign == "≤" else (1.04, 1.08)
    assert verdict(value, sign, must, goal) == expected


def test_without_bounds_a_ratio_is_told_not_judged():
    assert verdict(99.0, "≤", None, None) == "told"
    assert row("a : b", {}, "a", "b", at_most=(1, 1))["verdict"] == "not measured"


def test_captioning_benchmark_runs_and_finds_the_same_captions():
    command = [sys.executable, "-m", "benchmarks.captioning", "--images", "2", "--samples", "2", "--words", "2",
               "--beam", "2", "--rounds", "1"]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert (results["same_captions"], results["max_length"], results["run"]) == (1, 2, None)
    assert len(results["kept"]) == 3
    assert all(seconds > 0 for seconds in results["seconds"].values())


def test_captioning_benchmark_of_a_run_captions_its_test_split(tmp_path, monkeypatch, capsys):
    start(tiny_recipe(tmp_path, "epochs=2"), tmp_path / "run").run()
    arguments = ["--run", str(tmp_path / "run"), "--samples", "2", "--images", "4", "--beam", "2", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["captioning", *arguments])
    captioning.main()
    results = json.loads(capsys.readouterr().out)
    assert (results["images"], results["max_length"], results["run"]) == (4, 20, "run")
    found = captioning.features_of(open_as(CaptionPosterior, tmp_path / "run"), 4)
    stored = read_features(tmp_path / "features.npy")
    assert found.tolist() == [stored.values[stored.rows[f"test{n}.jpg"]].tolist() for n in range(4)]


def tiny_settings(folder):
    return [f"corpus={write_tiny(folder)}", f"features={folder / 'features.npy'}", "hidden=8", "min_count=2",
            "batch_size=16", "threads=1"]  # fmt: skip


def test_epochs_are_timed_apart_from_reading_and_judged(tmp_path):
    pair = ("flickr8k-psgld", "flickr8k-rmsprop-dropout")
    assert epochs.bound(*pair) == 1.10
    assert epochs.bound(*reversed(pair)) is None
    for must, kept in {1000.0: True, 0.001: False}.items():
        result = epochs.measure(pair, tiny_settings(tmp_path), 1, must)
        assert list(result["kept"].values()) == [kept]
        assert min(*result["processor_seconds"].values(), *result["reading_seconds"].values()) > 0
    assert epochs.measure(pair, tiny_settings(tmp_path), 1, None)["kept"] == {}


def test_only_training_is_on_the_clock(tmp_path, monkeypatch):
    """A clock that goes on by 1 when an epoch is trained and by 100 when a trainer is made."""
    recipe, task = epochs.opened("flickr8k-rmsprop", tiny_settings(tmp_path))
    now, make, train = [0.0], epochs.Trainer.__init__, epochs.Trainer.run

    def slow_make(trainer, *given):
        now[0] += 100
        make(trainer, *given)

    def slow_train(trainer):
        now[0] += 1
        train(trainer)

    monkeypatch.setattr(epochs.Trainer, "__init__", slow_make)
    monkeypatch.setattr(epochs.Trainer, "run", slow_train)
    assert epochs.one_epoch(recipe, task, lambda: now[0])(2) == 2
    assert now == [202]


def test_a_pair_without_its_data_is_not_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    pair = next(pair for pair in epochs.EPOCH_PAIRS if pair.sampler == "flickr8k-psgld")
    assert epochs.epoch_contenders(pair) == []
    assert "flickr8k is not there" in capsys.readouterr().err
    assert row(pair.title, {}, pair.sampler, pair.optimiser, at_most=(1.1, 1.0))["verdict"] == "not measured"


def test_reading_is_measured_and_within_its_bounds(tmp_path):
    """The recorded run keeps the promise of three bytes a byte, and rows cost no memory."""
    reading.write_text(tmp_path / "t.txt", 20_000)
    assert reading.work("word", tmp_path / "t.txt")["tokens"] > 1000
    reading.write_table(tmp_path / "t.csv", 30)
    assert reading.work("table", tmp_path / "t.csv")["rows"] == 30
    cases = json.loads((ROOT / "results" / "bench-reading.json").read_text())["cases"]
    texts = {name: case for name, case in cases.items() if " by " in name}
    assert len(texts) == 3
    assert all(case["memory_per_byte"] < 3 for case in texts.values())
    few, many = (case for name, case in cases.items() if "rows" in name)
    assert many["rows"] >= 10 * few["rows"]
    assert many["memory_bytes"] < 2 * few["memory_bytes"]
    assert many["rows"] / many["processor_seconds"] > 10_000
