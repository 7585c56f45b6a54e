"""--overwrite removes what langevin wrote, and nothing else, and only when the new run stands."""

import json
import shutil

import pytest

from langevin.errors import LangevinError
from langevin.predict.export import export
from langevin.store.folder import MARKER, RunFolder
from langevin.store.lock import LOCK
from langevin.store.replacement import FILES, owned, replaceable, replacing
from langevin.training.chains import start_chains
from langevin.training.distil import Teaching, start_student
from langevin.posterior.selection import Selection
from langevin.training.session import start
from tests.training.test_loop import fingerprint


def contents(folder):
    """All files below a folder, but for the lock, which may stay behind."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != LOCK}


@pytest.fixture
def run(finished_run, tmp_path):
    return shutil.copytree(finished_run, tmp_path / "run")


MAKERS = {
    "train": lambda recipe, out, teacher: start(recipe, out, overwrite=True),
    "chains": lambda recipe, out, teacher: start_chains(recipe, out, 2, overwrite=True),
    "distil": lambda recipe, out, teacher: start_student(teacher, out, Selection(), Teaching(), epochs=1,
                                                         overwrite=True),
}
"""What can replace a run."""


@pytest.mark.parametrize("make", MAKERS)
def test_a_project_that_holds_a_recipe_is_not_a_run(tiny, tmp_path, finished_run, make):
    project = tmp_path / "project"
    (project / "notes").mkdir(parents=True)
    (project / "notes" / "thesis.md").write_text("years of work")
    (project / "story.txt").write_text("The only copy. " * 50)
    shutil.copy(finished_run / "recipe.toml", project)
    before = contents(project)
    with pytest.raises(LangevinError, match="not a whole folder of langevin"):
        MAKERS[make](tiny(), project, finished_run)
    (project / "recipe.toml").write_text("flour = 500\n")
    with pytest.raises(LangevinError, match="none of ours"):
        MAKERS[make](tiny(), project, finished_run)
    assert set(contents(project)) == set(before)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["notes.md", "samples/best.safetensors", "samples/deep/x.txt", "chain-0/x.txt"])
def test_one_foreign_file_is_named_and_nothing_touched(tiny, run, finished_run, make, name):
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("years of work")
    before = contents(run)
    with pytest.raises(LangevinError, match=r"was not written by langevin.*nothing was touched") as refused:
        MAKERS[make](tiny(), run, finished_run)
    assert name.split("/")[0] in str(refused.value)
    assert contents(run) == before
    assert not (run / LOCK).exists() or (finished_run / LOCK).exists()


@pytest.mark.parametrize("make", MAKERS)
def test_a_run_gives_way_to_a_new_one_whole(tiny, run, finished_run, make):
    for name in ("collection.json", "report.html", ".checkpoint.safetensors.00ff00ff.tmp"):
        (run / name).write_text("{}")
    (run / "samples" / "000000999.safetensors").write_text("cut off before it was listed")
    MAKERS[make](tiny("hidden=4"), run, finished_run)
    assert (RunFolder(run).recipe.model.hidden == 4) == (make != "distil")
    assert not list(run.rglob("*.tmp")) + list(run.rglob("collection.json")) + list(run.rglob("0*.safetensors"))
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_chains_give_way_to_a_run(tiny, tmp_path):
    start_chains(tiny(), tmp_path / "c", 3)
    start(tiny(), tmp_path / "c", overwrite=True).run()
    assert not RunFolder(tmp_path / "c").chains
    assert not list((tmp_path / "c").glob("chain*"))


def test_folders_of_older_versions_are_known_by_their_complete_shape(tiny, run):
    (run / MARKER).unlink()
    replaceable(run)
    for name in ("origin.json", "vocabulary.json"):
        content = (run / name).read_bytes()
        for broken in (None, b"{", b"[]"):
            (run / name).unlink() if broken is None else (run / name).write_bytes(broken)
            with pytest.raises(LangevinError, match=f"no sound {name}"):
                start(tiny(), run, overwrite=True)
        (run / name).write_bytes(content)
    assert start(tiny("hidden=4"), run, overwrite=True).recipe.model.hidden == 4


@pytest.mark.parametrize("said", ["{}", "[", '{"format": 2, "kind": "run"}', '{"format": 1, "kind": "project"}'])
def test_a_marker_of_something_else_is_refused(tiny, run, said):
    (run / MARKER).write_text(said)
    before = contents(run)
    with pytest.raises(LangevinError, match="of which kind"):
        start(tiny(), run, overwrite=True)
    assert contents(run) == before


def test_links_in_a_run_are_foreign_and_what_they_lead_to_stays(tiny, run, tmp_path):
    elsewhere = (run / "samples").rename(tmp_path / "elsewhere")
    (run / "samples").symlink_to(elsewhere)
    before = contents(elsewhere)
    with pytest.raises(LangevinError, match="samples was not written by langevin"):
        start(tiny(), run, overwrite=True)
    assert contents(elsewhere) == before
    (run / "samples").unlink()
    start(tiny(), run, overwrite=True)
    assert contents(elsewhere) == before


def test_a_link_to_a_run_still_leads_to_the_new_one(tiny, run, tmp_path):
    (tmp_path / "latest").symlink_to(run)
    start(tiny("hidden=4"), tmp_path / "latest", overwrite=True)
    assert (tmp_path / "latest").is_symlink()
    assert RunFolder(run).recipe.model.hidden == 4


@pytest.mark.parametrize("name", ["own.txt", "log.txt"])
def test_the_text_of_the_new_run_in_the_old_folder_survives(cli, text_file, run, name):
    text = shutil.copy(text_file, run / name)
    before = contents(run)
    code, _, messages = cli("train", "--text", text, "--out", run, "--overwrite")
    assert code == 2
    assert name in messages
    assert contents(run) == before


@pytest.mark.parametrize("make", ["train", "chains"])
@pytest.mark.parametrize("setting", ["device=nonsense", "hidden=10000000"])
def test_a_setting_that_does_not_work_costs_nothing(tiny, run, finished_run, make, setting):
    before = contents(run)
    with pytest.raises((LangevinError, RuntimeError)):  # no machine has the memory
        MAKERS[make](tiny(setting), run, finished_run)
    assert contents(run) == before
    with pytest.raises((LangevinError, RuntimeError)):
        start(tiny(setting), run.with_name("new"))
    assert not run.with_name("new").exists()


def test_a_student_that_cannot_be_taught_costs_nothing(run, finished_run, tmp_path):
    teacher = shutil.copytree(finished_run, tmp_path / "teacher")
    victim = RunFolder(teacher).store().read()[1].path
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    before = fingerprint(run)
    with pytest.raises(LangevinError, match=victim.name):
        start_student(teacher, run, Selection(), Teaching(), overwrite=True)
    assert fingerprint(run) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "teacher"]


def test_whatever_fails_meanwhile_brings_the_old_one_back(tiny, run):
    before = contents(run)

    def begin_and_fail(failure):
        assert not run.exists()
        start(tiny("hidden=4"), run).save()
        raise failure

    for failure in (ZeroDivisionError, KeyboardInterrupt):
        with pytest.raises(failure), replacing(run):
            begin_and_fail(failure)
        assert contents(run) == before
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_while_the_new_one_is_made_the_old_one_stands_aside_and_is_named(run):
    before = contents(run)

    def look_and_fail():
        (aside,) = run.parent.glob(".run.replaced-*")
        assert contents(aside) == before
        with pytest.raises(LangevinError, match=aside.name):
            RunFolder(run)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), replacing(run):
        look_and_fail()


def test_what_was_put_there_while_the_new_one_was_made_stays(run, caplog):
    with replacing(run):
        (aside,) = run.parent.glob(".run.replaced-*")
        (aside / "notes.md").write_text("years of work")
    assert (aside / "notes.md").read_text() == "years of work"
    assert "could not be removed" in caplog.text


def test_every_file_that_commands_leave_in_a_run_is_listed(cli, run):
    for command in (("evaluate", run), ("report", run, "--quiet"), ("resume", run)):
        assert cli(*command)[0] == 0
    assert {path.name for path in owned(run)} >= {"collection.json", "report.html", "recipe.toml", MARKER}


def test_an_export_is_replaced_whole_or_not_at_all(finished_run, tmp_path):
    out = tmp_path / "shared"
    export(finished_run, out, measure=False)
    assert {path.name for path in out.iterdir()} == {*FILES["export"], "samples", MARKER}
    before = contents(out)
    with pytest.raises(LangevinError, match="between 1 and 4"):
        export(finished_run, out, Selection("backward", 9), overwrite=True)
    (out / "notes.md").write_text("years of work")
    with pytest.raises(LangevinError, match=r"notes\.md was not written by langevin"):
        export(finished_run, out, overwrite=True)
    (out / "notes.md").unlink()
    assert contents(out) == before
    (out / MARKER).unlink()  # as older versions left it
    export(finished_run, out, Selection("backward", 2), measure=False, overwrite=True)
    assert len(list((out / "samples").glob("*.safetensors"))) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]


def test_export_leaves_alone_what_its_temporary_folder_was_once_called(finished_run, tmp_path):
    mine = tmp_path / ".shared.making"
    mine.mkdir()
    (mine / "notes.md").write_text("years of work")
    export(finished_run, tmp_path / "shared", measure=False)
    assert (mine / "notes.md").read_text() == "years of work"


def test_a_config_of_another_library_is_no_export(finished_run, tmp_path):
    out = tmp_path / "other"
    out.mkdir()
    (out / "config.json").write_text(json.dumps({"library_name": "langevin"}))
    (out / "README.md").write_text("years of work")
    with pytest.raises(LangevinError, match="holds something else"):
        export(finished_run, out, overwrite=True)
    assert (out / "README.md").read_text() == "years of work"
