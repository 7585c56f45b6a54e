"""The quick version of a target runs, resumes what is there, and prints its table."""

import json


def test_quick_target_runs_two_seeds_and_is_not_run_again(langevin, tmp_path):
    arguments = ("reproduce", "wp", "--quick", "--cells", "wp-rnn-psgld", "--cells", "wp-rnn-rmsprop", "--seeds", "2",
                 "--jobs", "2", "--out", tmp_path / "runs", "--json")
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


def test_alternatives_record_short_runs_averaged_weights_and_masks(langevin, real_data, tmp_path):
    done = langevin("reproduce", "alternatives-trec", "--quick", "--cells", "trec-rmsprop-dropout.four", "--cells",
                    "trec-rmsprop-dropout.full", "--precision", "bfloat16", "--out", tmp_path / "runs", timeout=300)
    assert done.returncode == 0, done.stderr
    assert "deep ensemble" in done.stdout
    results = tmp_path / "runs-quick"
    four = json.loads((results / "trec-rmsprop-dropout.four.json").read_text())
    assert sorted({each["chain"] for each in four["test"]["each"]}) == [0, 1, 2, 3]
    assert "weight_averaged" not in four["test"]
    full = json.loads((results / "trec-rmsprop-dropout.full.json").read_text())
    assert full["recipe"]["run"]["precision"] == "bfloat16"
    assert 0 <= full["test"]["weight_averaged"]["error"] <= 100
    assert full["test"]["mc_dropout"]["nll"] > 0
    assert 0 <= min(full["rejection"]["aurc"].values()) <= max(full["rejection"]["aurc"].values()) <= 1
    assert "refused" in full["rejection"] or full["rejection"]["held"] in (True, False)
