"""The quick version of a target runs, resumes what is there, and prints its table."""

import json
import shutil
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from paper import runs
from paper.targets import TARGETS

README = Path(__file__).parents[2] / "README.md"


def test_quick_target_runs_two_seeds_and_is_not_run_again(paper_process, tmp_path):
    arguments = ("reproduce", "wp", "--quick", "--cells", "wp-rnn-psgld,wp-rnn-rmsprop", "--seeds", "2", "--jobs",
                 "2", "--out", tmp_path / "runs", "--json")
    done = paper_process(*arguments, timeout=300)
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
    again = paper_process(*arguments)
    assert json.loads(again.stdout) == told
    assert [path.stat().st_mtime_ns for path in written] == before


def test_targets_are_listed_with_their_state(paper, tmp_path):
    code, printed, _ = paper("reproduce", "--out", tmp_path / "runs", "--results", tmp_path, "--json")
    assert code == 0
    listed = {entry["target"]: entry for entry in json.loads(printed)}
    assert listed["wp"]["state"] == "not run"
    assert all(entry["minutes"] == entry["minutes_left"] > 0 for entry in listed.values())
    assert listed["sentences"]["runs"] == 250  # ten of each cell, as in the paper
    for name, rows in {"ablation": 2, "time": 3}.items():
        told = json.loads(paper("reproduce", name, "--dry", "--results", tmp_path, "--json")[1])
        assert len(told["rows"]) == rows
    assert {"ptb", "sentences", "flickr8k", "ablation", "time", "samples", "uncertainty"} <= set(listed)
    code, _, messages = paper("reproduce", "table9")
    assert code == 2
    assert "no target 'table9'" in messages


@pytest.mark.parametrize(("arguments", "message"), [
    (["wp", "--cells", ""], "expected names of cells"), (["wp", "--cells", " ,"], "expected names of cells"),
    (["--cells", "wp-rnn-psgld"], "without one"), (["wp", "--results", "FILE"], "got a file"),
    (["--results", "FILE"], "got a file"), (["wp", "--results", "FILE/results"], "cannot be made"),
])
def test_what_is_refused_before_anything_is_trained(paper, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text("")
    code, _, messages = paper("reproduce", *arguments)
    assert code == 2
    assert message in messages
    assert not (tmp_path / "runs").exists()


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
    runs.refuse_other_recipes([run], tmp_path / "runs", tmp_path)  # it goes on as it was begun
    recorded.write_text(json.dumps({"recipe": load_recipe(run.recipe).model_dump(mode="json")}))
    (folder / "recipe.toml").write_text(load_recipe(run.recipe, ["lr=0.5"]).to_toml())
    # a figure would be drawn of it
    with pytest.raises(LangevinError, match=r"expected sampler.lr = 0.002 in .*runs"):
        runs.refuse_other_recipes([run], tmp_path / "runs", tmp_path)
    recorded.unlink()
    (folder / "recipe.toml").write_text(recipe.to_toml())
    with pytest.raises(LangevinError, match=r"expected run\.precision = float32"):
        runs.refuse_other_recipes([run], tmp_path / "runs", tmp_path, "float32")


def test_new_runs_of_a_cell_are_of_the_precision_of_those_recorded(tmp_path):
    first, second = TARGETS["wp"].runs(("wp-rnn-psgld",), seeds=2)
    assert runs.settings_of(second, tmp_path / "runs", tmp_path) == second.overrides
    recipe = load_recipe(first.recipe, ["precision=bfloat16"])
    (tmp_path / f"{first.name}.json").write_text(json.dumps({"recipe": recipe.model_dump(mode="json")}))
    assert runs.settings_of(second, tmp_path / "runs", tmp_path)[0] == "precision=bfloat16"
    assert runs.settings_of(second, tmp_path / "runs", tmp_path, "float32")[0] == "precision=float32"


@pytest.mark.parametrize("content", ['{"a": 1}', '{"recipe": 3}', '{"rec', "[]"])
def test_a_damaged_file_does_not_hide_the_list_of_targets(paper, tmp_path, content):
    (tmp_path / "wp-rnn-psgld.json").write_text(content)
    for target, name in {"time": "bench-captioning", "words": "figures/words"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.json").write_text("[]" if target == "words" else content)
        code, _, messages = paper("reproduce", target, "--dry", "--json", "--results", tmp_path)
        assert code == 2
        assert "expected recorded numbers in" in messages
    code, printed, _ = paper("reproduce", "--out", tmp_path / "runs", "--results", tmp_path)
    assert code == 0
    assert "Table 2: War and Peace" in printed
    code, _, messages = paper("reproduce", "wp", "--dry", "--results", tmp_path)
    assert code == 2
    assert "expected recorded numbers in" in messages


def test_a_folder_in_the_place_of_a_file_is_named(paper, tmp_path):
    (tmp_path / "wp-gru-psgld.json").mkdir()
    code, _, messages = paper("reproduce", "wp", "--dry", "--results", tmp_path)
    assert code == 2
    assert "which cannot be read" in messages


def test_what_lacks_its_data_is_told_and_not_begun(paper, tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    listed = json.loads(paper("reproduce", "--results", tmp_path, "--out", tmp_path / "runs", "--json")[1])
    assert {one["target"] for one in listed if one["state"] == "not run"} == {"wp", "cycles", "chains"}
    assert {one["state"] for one in listed} == {"not run", "no data"}
    code, _, messages = paper("reproduce", "ptb", "--cells", "ptb-small-random-sgd", "--seeds", 1, "--results",
                              tmp_path, "--out", tmp_path / "runs")
    assert code == 2
    assert "it needs ptb, not found in" in messages
    assert not (tmp_path / "runs").exists()


def test_missing_benchmarks_are_run_in_turn(paper, tmp_path, monkeypatch):
    for name in ("flickr8k-rmsprop-dropout", "flickr8k-psgld", "bench-captioning"):
        shutil.copy(README.parent / "results" / f"{name}.json", tmp_path)
    listed = {one["target"]: one for one in json.loads(paper("reproduce", "--results", tmp_path, "--json")[1])}
    assert [listed["time"][key] for key in ("state", "recorded", "runs")] == ["partly", 3, 4]
    begun = []
    monkeypatch.setattr(runs, "run_side_by_side", lambda jobs, at_once, **_: begun.extend([(at_once, *jobs)]))
    monkeypatch.chdir(tmp_path)
    code, _, said = paper("reproduce", "time", "--out", tmp_path / "runs", "--results", tmp_path)
    assert (code, begun) == (2, [])
    assert "bench-epochs-flickr8k failed: it is in the source tree" in said
    monkeypatch.chdir(README.parent)
    code, printed, _ = paper("reproduce", "time", "--out", tmp_path / "runs", "--results", tmp_path)
    assert code == 0
    assert "17 samples : one sample" in printed
    ((at_once, job),) = begun
    assert (at_once, job.name) == (1, "bench-epochs-flickr8k")
    assert job.command[1:4] == ["-m", "benchmarks.epochs", "flickr8k-psgld"]
    assert job.command[-2:] == ["--json", str(tmp_path / "bench-epochs-flickr8k.json")]
    # it needs the samples of a run, whose numbers are recorded
    (tmp_path / "bench-captioning.json").unlink()
    time = TARGETS["time"]
    assert [run.name for run in runs.missing_runs(time, time.runs(), tmp_path / "runs", tmp_path)] == ["flickr8k-psgld"]


def test_figures_say_where_they_are(paper, tmp_path):
    assert "Not drawn yet" in paper("reproduce", "words", "--dry", "--results", tmp_path)[1]
    assert "words.png" in paper("reproduce", "words", "--dry", "--results", README.parent / "results")[1]
    code, _, messages = paper("reproduce", "--precision", "float32")
    assert code == 2
    assert "name a target" in messages


def test_a_run_that_fails_does_not_stop_the_others(paper_process, tmp_path):
    broken = tmp_path / "runs-quick" / "wp-rnn-rmsprop"
    broken.parent.mkdir()
    broken.write_text("a file where the run folder should be")
    done = paper_process("reproduce", "wp", "--quick", "--cells", "wp-rnn-*", "--seeds", "1", "--jobs", "1", "--out",
                    tmp_path / "runs", timeout=300)
    assert done.returncode == 2
    assert "wp-rnn-rmsprop failed: " in done.stderr
    assert (tmp_path / "runs-quick" / "wp-rnn-psgld.json").is_file()
    assert "| `wp-rnn-psgld` | 1 |" in done.stdout
    refused = paper_process("tables", "--results", tmp_path / "runs-quick", "--docs", tmp_path / "page.md", "--scores",
                       README)
    assert refused.returncode == 2
    assert "quick version" in refused.stderr
    assert not (tmp_path / "page.md").exists()


def test_pages_are_not_written_without_results(paper, tmp_path):
    page = tmp_path / "README.md"
    page.write_text("no place for tables")
    for arguments, message in {
        ("--results", tmp_path / "absent"): "got none", ("--results", page): "got none",
        ("--results", README.parent / "results"): f"results:end --> in {page}",
        ("--scores", tmp_path / "absent.md"): "got none", ("--findings", tmp_path): "got none",
    }.items():
        code, _, messages = paper("tables", "--docs", tmp_path / "page.md", "--results", tmp_path, "--scores", page,
                                *arguments)
        assert code == 2
        assert message in messages
    assert not (tmp_path / "page.md").exists()
    assert page.read_text() == "no place for tables"


def test_quick_numbers_stay_with_their_runs(paper, tmp_path):
    code, _, messages = paper("reproduce", "wp", "--quick", "--results", tmp_path)
    assert code == 2
    assert "leave it out" in messages
