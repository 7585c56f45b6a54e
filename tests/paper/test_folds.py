"""Folds and seeds side by side: what is trained, kept, summarised; stopping, going on, failing."""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.store.folder import RECIPE, RunFolder
from paper.numbers import read_result
from paper.folds import EVALUATION, cross_validate, plan, spread
from tests.sentences import TINY_CLASSIFIER, questions, write_questions


@pytest.fixture
def small(tmp_path):
    file = write_questions(tmp_path / "questions.txt")

    def build(*overrides):
        return load_recipe("mr-psgld", [f"corpus={file}", *TINY_CLASSIFIER, "temperature=0.01", *overrides])

    return build


def test_plan_of_folds_and_of_seeds(small, tmp_path):
    members = plan(small("folds=4"), tmp_path, None, 10)
    assert [m.name for m in members] == ["fold-0", "fold-1", "fold-2", "fold-3"]
    assert [m.recipe.data.fold for m in members] == [0, 1, 2, 3]
    assert {(m.recipe.run.seed, m.recipe.run.threads) for m in members} == {(0, 1)}
    assert len(plan(small(), tmp_path, 3, 10)) == 3
    with pytest.raises(LangevinError, match="between 1 and 4 folds"):
        plan(small("folds=4"), tmp_path, 5, 10)
    members = plan(load_recipe("trec-psgld"), tmp_path, None, 3)
    assert [(m.name, m.recipe.run.seed, m.recipe.data.fold) for m in members] == [
        ("run-0", 0, None), ("run-1", 1, None), ("run-2", 2, None)]
    with pytest.raises(LangevinError, match="use --runs"):
        plan(load_recipe("trec-psgld"), tmp_path, 3, 3)


def test_spread_is_over_n_minus_one():
    assert spread([1.0, 2.0, 6.0]) == {"mean": 3.0, "std": pytest.approx(7**0.5)}
    assert spread([1.0]) == {"mean": 1.0, "std": None}


def test_folds_are_trained_evaluated_kept_and_not_run_again(small, tmp_path):
    out, recipe = tmp_path / "cv", small("folds=3")
    seen = []
    result = cross_validate(recipe, out, folds=2, jobs=2, watch=lambda done, total, working: seen.append(len(working)))
    assert max(seen) >= 1
    begun, ended = ([(out / f"fold-{k}" / name).stat().st_mtime_ns for k in range(2)] for name in (RECIPE, EVALUATION))
    assert max(begun) < min(ended)  # side by side
    assert (result["count"], result["over"], result["failed"]) == (2, "folds", [])
    kept = [read_result(out / f"fold-{k}" / "evaluation.json") for k in range(2)]
    for kind in ("single", "averaged"):
        for name in ("error", "nll", "ece", "brier"):
            values = [k["test"][kind][name] for k in kept]
            assert result["summary"][kind][name] == {"mean": statistics.fmean(values), "std": statistics.stdev(values)}
    assert len(kept[0]["test"]["each"]) == len(kept[0]["valid"]["curve"]["forward"]) == kept[0]["samples"] == 4
    assert json.loads((out / "crossval.json").read_text()) == result
    damaged = out / "fold-0" / "evaluation.json"
    damaged.write_text(damaged.read_text()[:99])  # is evaluated again
    assert cross_validate(recipe, out, folds=2, jobs=1)["summary"] == result["summary"]
    times = {k: (out / f"fold-{k}" / "evaluation.json").stat().st_mtime_ns for k in range(2)}
    again = cross_validate(recipe, out, folds=3, jobs=1, forget_samples=True)
    assert again["count"] == 3
    assert again["members"]["fold-1"] == result["members"]["fold-1"]
    assert times == {k: (out / f"fold-{k}" / "evaluation.json").stat().st_mtime_ns for k in range(2)}
    assert [len(RunFolder(out / f"fold-{k}").store()) for k in range(3)] == [4, 4, 0]
    with pytest.raises(LangevinError, match="another recipe"):
        cross_validate(small("folds=3", "hidden=9"), out, folds=2)


def test_the_command_prints_mean_and_deviation_over_seeds(paper, small, tmp_path):
    test = write_questions(tmp_path / "t.txt", questions(30, seed=2))
    path = tmp_path / "r.toml"
    path.write_text(small(f"test_file={test}").to_toml())
    code, printed, messages = paper("folds", path, "--runs", "2", "--jobs", "2", "--out", tmp_path / "cv")
    assert code == 0, messages
    assert "over 2 seeds" in printed
    assert "±" in printed
    assert "0 of 2 done" in messages
    code, printed, _ = paper("folds", path, "--runs", "2", "--out", tmp_path / "cv", "--json")
    assert set(json.loads(printed)["members"]) == {"run-0", "run-1"}
    seeds = [json.loads((tmp_path / "cv" / f"run-{k}" / "evaluation.json").read_text())["seed"] for k in range(2)]
    assert seeds == [0, 1]


def test_a_member_that_fails_is_said_and_bad_data_is_refused_before_any_child(paper, small, tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(small("folds=2", "lr=1e30").to_toml())
    code, _, messages = paper("folds", path, "--folds", "1", "--out", tmp_path / "cv")
    assert code == 2
    assert "fold-0 of 1 did not end well: langevin: the loss became" in messages
    path.write_text(small("folds=2", f"corpus={tmp_path / 'no.csv'}").to_toml())
    code, _, messages = paper("folds", path, "--out", tmp_path / "other")
    assert code == 2
    assert "found nothing" in messages
    assert not (tmp_path / "other").exists()


def children_of(out: Path) -> list[str]:
    """Processes whose command line names the folder of a member."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if f"{out}/fold-".encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_stopping_stops_the_children_and_the_same_command_goes_on(small, tmp_path, way, paper):
    path, out = tmp_path / "r.toml", tmp_path / "cv"
    path.write_text(small("folds=2", "epochs=150", "sample_every=50", "checkpoint_minutes=0.002").to_toml())
    command = [sys.executable, "-m", "paper", "folds", str(path), "--out", str(out)]
    process = subprocess.Popen([*command, "--jobs", "2"], stderr=subprocess.PIPE, text=True,
                               env=os.environ | {"OMP_NUM_THREADS": "1"})
    waited = time.monotonic() + 120
    while not all((out / f"fold-{k}" / "checkpoint.safetensors").exists() for k in range(2)):
        assert time.monotonic() < waited
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(way)
    _, messages = process.communicate(timeout=60)
    if way != signal.SIGKILL:
        assert process.returncode == 130
        assert "the same command goes on" in messages
        assert not children_of(out)
    while children_of(out) and time.monotonic() < waited:
        time.sleep(0.1)
    assert not children_of(out)
    assert not (out / "fold-0" / "evaluation.json").exists()
    if way == signal.SIGINT:
        reached = RunFolder(out / "fold-0").progress().step
        assert 0 < reached < 1500
        code, printed, _ = paper("folds", path, "--out", out, "--jobs", "2", "--json")
        assert code == 0
        assert json.loads(printed)["count"] == 2
