"""`check` says of every file whether it is as it was written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from langevin.predict.export import export
from langevin.store.check import check_folder
from langevin.store.folder import RunFolder
from langevin.training.chains import start_chains

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def run(finished_run, tmp_path):
    return shutil.copytree(finished_run, tmp_path / "run")


def damaged(folder):
    return {finding.file: finding.said for finding in check_folder(folder) if not finding.sound}


def test_what_is_sound_is_said_to_be(cli, run, tmp_path, finished_run):
    export(finished_run, tmp_path / "e", measure=False)
    for folder in (run, tmp_path / "e"):
        code, printed, _ = cli("check", folder, "--json")
        told = json.loads(printed)
        assert (code, told["sound"]) == (0, True)
        files = {found["file"] for found in told["files"]}
        there = {path.name for path in folder.iterdir()} - {".langevin.lock", "README.md"}
        assert there <= {name for file in files for name in file.split(", ")}


@pytest.mark.parametrize("folder", ["bytes", "words", "questions", "captions", "chains", "student",
                                    "bytes-shared", "chains-shared"])
def test_folders_of_old_are_sound(folder):
    assert damaged(FIXTURES / folder) == {}


@pytest.mark.parametrize("name", ["origin.json", "vocabulary.json", "checkpoint.safetensors",
                                  "samples/manifest.jsonl", ".langevin-run.json"])
def test_one_changed_byte_is_found_in_its_file(cli, run, name):
    path = run / name
    raw = path.read_bytes()
    place = max(i for i in range(len(raw) - 2) if chr(raw[i]).isalnum())
    path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
    code, printed, _ = cli("check", run)
    assert code == 2
    (file, *_) = damaged(run)
    assert file in (name, "samples")
    assert f"DAMAGED  {file}" in printed
    assert f"{run} is damaged" in printed


def test_samples_that_are_changed_or_gone_are_named(run):
    first, second, *_ = RunFolder(run).store().samples
    first.path.unlink()
    second.path.write_bytes(second.path.read_bytes()[:-1] + b"x")
    assert set(damaged(run)) == {f"samples/{first.path.name}", f"samples/{second.path.name}"}


def test_a_list_that_lost_what_the_checkpoint_knows_is_not_sound(run):
    path = run / "samples" / "manifest.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    (said,) = damaged(run).values()
    assert "as the checkpoint knows it" in said


def test_a_recipe_edited_on_purpose_is_said_to_be_one(run):
    (run / "recipe.toml").write_text((run / "recipe.toml").read_text() + "\n# slower\n")
    (run / "notes.md").write_text("mine")
    said = {found.file: (found.sound, found.said) for found in check_folder(run)}
    assert said["recipe.toml"] == (True, "edited since the run began")
    assert said["notes.md"] == (True, "not langevin's, not looked at")


def test_chains_are_checked_each(tiny, tmp_path):
    start_chains(tiny(), tmp_path / "c", 2)
    assert damaged(tmp_path / "c") == {}
    (tmp_path / "c" / "chain-1" / "vocabulary.json").write_text("{}")
    assert set(damaged(tmp_path / "c")) == {"chain-1/vocabulary.json"}


def test_a_folder_that_is_none_of_ours_is_refused(cli, tmp_path):
    code, _, messages = cli("check", tmp_path)
    assert code == 2
    assert "expected a run folder" in messages
