"""The quick version of a target runs, resumes what is there, and prints its table."""

import json

import pytest

from langevin.reproduce import runs


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
    assert {"ptb", "sentences", "flickr8k", "ablation", "time", "samples", "uncertainty"} <= set(listed)
    code, _, messages = cli("reproduce", "table9")
    assert code == 2
    assert "no target 'table9'" in messages


def test_chains_stop_with_the_process_that_asked_for_them(monkeypatch):
    runs.stop_if_abandoned()
    monkeypatch.setattr(runs, "abandoned", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        runs.stop_if_abandoned()
