"""What once led to another answer, a traceback or a wait, and is refused or said now."""

import json
import os
import shutil

import pytest

from langevin.errors import LangevinError
from langevin.posterior.selection import names_of, resolve
from langevin.report.summary import run_summary
from langevin.store.check import check_folder
from langevin.store.folder import RunFolder
from langevin.store.manifest import Choice
from langevin.store.records import write_sealed
from langevin.training.session import resume, start


@pytest.fixture
def run(finished_run, tmp_path):
    return shutil.copytree(finished_run, tmp_path / "run")


def drop_last_line(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))


def test_a_sample_that_is_no_longer_listed_is_missed(run):
    drop_last_line(run / "samples" / "manifest.jsonl")
    store = RunFolder(run).store()
    for use in (len, lambda store: store.read(), lambda store: store.select("thinned", 1)):
        with pytest.raises(LangevinError, match="is not listed as the checkpoint knows it, 1 of"):
            use(store)
    left = RunFolder(run).store(skip_damaged=True)
    assert (len(left), len(left.skipped)) == (3, 1)
    resume(run)
    assert len(RunFolder(run).store()) == 4


def test_lines_in_another_order_are_refused(run):
    path = run / "samples" / "manifest.jsonl"
    header, one, other, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([header, other, one, *rest]))
    with pytest.raises(LangevinError, match="expected steps that increase"):
        RunFolder(run).store()


def test_an_edited_recipe_is_told(run, caplog):
    assert RunFolder(run).recipe
    assert not caplog.messages
    path = run / "recipe.toml"
    path.write_text(path.read_text().replace("seed = 0", "seed = 1"))
    assert RunFolder(run).recipe.run.seed == 1
    assert caplog.messages == [f"{path} was edited since the run began"]


def test_the_vocabulary_of_another_run_is_refused(run):
    path = run / "vocabulary.json"
    content = json.loads(path.read_bytes())
    content["tokens"] = content["tokens"][::-1]
    write_sealed(path, content)
    with pytest.raises(LangevinError, match="expected the vocabulary that the run"):
        RunFolder(run).vocabulary  # noqa: B018


def test_the_checkpoint_of_an_older_run_is_refused(run):
    old = RunFolder("tests/fixtures/bytes").path / "checkpoint.safetensors"
    shutil.copy(old, run / "checkpoint.safetensors")
    for use in (RunFolder.progress, RunFolder.load_checkpoint, RunFolder.store):
        with pytest.raises(LangevinError, match="is of another run, an older one"):
            use(RunFolder(run))


def test_chains_without_their_list_are_no_single_run(run, tmp_path):
    shutil.copytree(run, run / "chain-0")
    with pytest.raises(LangevinError, match=r"chains\.json"):
        RunFolder(run)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", ["checkpoint.safetensors", "sample", "recipe.toml"])
def test_a_pipe_is_not_waited_for(run, name):
    folder = RunFolder(run)
    path = folder.store().samples[-1].path if name == "sample" else run / name
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LangevinError):
        [sample.load() for sample in resolve(RunFolder(run)).samples]


def test_a_damaged_sample_is_told_of_when_a_run_goes_on(run, caplog):
    path = RunFolder(run).store().samples[0].path
    path.write_bytes(path.read_bytes()[:-1])
    resume(run)
    assert [f"sample {path} was changed after it was written" in said
            for said in caplog.messages] == [True]


def test_the_marker_of_a_new_run_must_be_there(run):
    (run / ".langevin-run.json").unlink()
    assert not check_folder(run)[0].sound


def test_versions_that_are_shown_must_be_there(run):
    origin = json.loads((run / "origin.json").read_bytes())
    del origin["versions"]["torch"]
    write_sealed(run / "origin.json", origin)
    with pytest.raises(LangevinError, match=r"expected versions in .* versions of torch"):
        RunFolder(run).origin  # noqa: B018


def test_the_origin_of_an_older_run_is_refused(run):
    shutil.copy("tests/fixtures/bytes/origin.json", run / "origin.json")
    with pytest.raises(LangevinError, match="is of another run, an older one"):
        RunFolder(run).origin  # noqa: B018


def test_a_choice_among_other_samples_is_said_not_to_count(run, caplog):
    folder = RunFolder(run)
    samples = folder.store().samples
    assert len(resolve(folder).samples) == 4
    assert not caplog.messages
    folder.remember(Choice(how="backward", samples=1, score=1.0, of=names_of(samples)))
    assert len(resolve(folder).samples) == 1
    folder.remember(Choice(how="backward", samples=1, score=1.0, of=names_of(samples[1:])))
    assert len(resolve(folder).samples) == 4
    assert ["was chosen among other samples" in said for said in caplog.messages] == [True]


def test_a_run_before_its_first_sample_says_how_to_go_on(tiny, tmp_path):
    trainer = start(tiny(), tmp_path / "r")
    trainer.save()
    with pytest.raises(LangevinError, match=r"it stands at step 0 of \d+; go on with 'langevin resume"):
        resolve(RunFolder(tmp_path / "r"))


def test_show_tells_which_samples_are_listed_only(run):
    RunFolder(run).store().samples[0].path.unlink()
    facts = run_summary(RunFolder(run))["facts"]
    assert facts["samples"] == "3 stored; 1 more are listed but not there"
