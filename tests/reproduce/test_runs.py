"""The quick version of a target runs, resumes what is there, and prints its table."""

import json

import pytest

from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.reproduce import runs
from langevin.reproduce.targets import TARGETS


def test_quick_target_runs_two_seeds_and_is_not_run_again(langevin, tmp_path):
    arguments = ("reproduce", "wp", "--quick", "--cells", "wp-rnn-psgld,wp-rnn-rmsprop", "--seeds", "2", "--jobs",
                 "2", "--out", tmp_path / "runs", "--json")
    done = langevin(*arguments, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    rows = {row["cell"]: row for row in told["rows"]}
    assert told["quick"]
    assert rows["wp-rnn-psgld"]["runs"] == rows["wp-rnn-rmsprop"]["runs"] == 2
    assert rows["wp-rnn-psgld"]["averaged"]["std"] > 0
    assert rows["wp-lstm-psgld"]["averaged"] is None
    assert len(told["claims"]) == 1
    written = sorted((tmp_path / "runs-quick").glob("*.json"))
    before = [path.stat().st_mtime_ns for path in written]
    assert [path.stem for path in written] == [
        "wp-rnn-psgld", "wp-rnn-psgld.seed1", "wp-rnn-rmsprop", "wp-rnn-rmsprop.seed1"
    ]
    again = langevin(*arguments)
    assert json.loads(again.stdout) == told
    assert [path.stat().st_mtime_ns for path in written] == before


def test_targets_are_listed_with_their_state(cli, tmp_path):
    code, printed, _ = cli("reproduce", "--out", tmp_path / "runs", "--results", tmp_path, "--json")
    assert code == 0
    listed = {entry["target"]: entry for entry in json.loads(printed)}
    assert listed["wp"]["state"] == "not run"
    assert all(entry["minutes_left"] > 0 for entry in listed.values())
    assert listed["sentences"]["runs"] == 250  # ten of each cell, as in the paper
    for name, rows in {"ablation": 2, "time": 3}.items():
        told = json.loads(cli("reproduce", name, "--dry", "--results", tmp_path, "--json")[1])
        assert len(told["rows"]) == rows
    assert {"ptb", "sentences", "flickr8k", "ablation", "time", "samples", "uncertainty"} <= set(listed)
    code, _, messages = cli("reproduce", "table9")
    assert code == 2
    assert "no target 'table9'" in messages


def test_chains_stop_with_the_process_that_asked_for_them(monkeypatch):
    runs.stop_if_abandoned()
    monkeypatch.setattr(runs, "abandoned", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        runs.stop_if_abandoned()


def test_what_is_there_of_another_recipe_is_refused(tmp_path):
    (run,) = TARGETS["wp"].runs(("wp-rnn-psgld",))
    recipe = load_recipe(run.recipe, ["precision=bfloat16"])
    recorded = tmp_path / "wp-rnn-psgld.json"
    recorded.write_text(json.dumps({"recipe": recipe.model_dump(mode="json")}))
    runs.refuse_other_recipes([run], tmp_path / "runs", tmp_path)  # the tables tell the precision
    changed = load_recipe(run.recipe, ["lr=0.5"]).model_dump(mode="json")
    recorded.write_text(json.dumps({"recipe": changed}))
    with pytest.raises(LangevinError, match=r"expected sampler.lr = 0.002 in .*, got 0.5"):
        runs.refuse_other_recipes([run], tmp_path / "runs", tmp_path)
    recorded.unlink()
    folder = tmp_path / "runs" / run.name
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(recipe.to_toml())
    runs.refuse_other_recipes([run], tmp_path / "runs", tmp_path, ["precision=bfloat16"])
    with pytest.raises(LangevinError, match=r"expected run\.precision = float32"):
        runs.refuse_other_recipes([run], tmp_path / "runs", tmp_path)
