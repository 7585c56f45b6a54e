"""A folder is begun again where a process was killed, and never made anew under a run."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from langevin import files
from langevin.errors import LangevinError
from langevin.store.folder import ORIGIN, RECIPE, VOCABULARY, RunFolder
from langevin.store.lock import LOCK
from langevin.training.chains import start_chains
from langevin.training.session import resume, start


class Killed(BaseException):
    """Like SIGKILL: nothing is tidied up."""


def killed_after(monkeypatch, count, make):
    """Run until so many files stand, then die with the next one half written."""
    done = []
    plain = Path.replace

    def replace(self, target):
        if len(done) == count:
            raise Killed
        done.append(target)
        return plain(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(Killed):
            make()


MAKERS = {"run": (start, 4), "chains": (lambda recipe, out: start_chains(recipe, out, 2), 13)}
"""What begins, and how many files it writes before it is one."""


@pytest.mark.parametrize("kind", MAKERS)
def test_killed_at_any_file_before_the_recipe_it_starts_over(tiny, tmp_path, monkeypatch, kind):
    make, most = MAKERS[kind]
    for count in range(most):
        out = tmp_path / f"{kind}-{count}"
        killed_after(monkeypatch, count, lambda out=out: make(tiny(), out))
        assert not (out / RECIPE).exists()
        assert [path for path in out.rglob("*") if path.name != LOCK]
        with pytest.raises(LangevinError, match="cut off before it began"):
            RunFolder(out)
        make(tiny(), out)
        assert not list(out.rglob("*.tmp"))
        assert RunFolder(out).recipe == tiny()
    killed = tmp_path / "later"
    make(tiny(), killed)
    with pytest.raises(LangevinError, match="already holds a run"):
        make(tiny(), killed)


@pytest.mark.parametrize("name", ["notes.md", "samples/000000007.safetensors",
                                  "checkpoint.safetensors", "chain-0/notes.md"])
def test_with_anything_else_in_it_nothing_is_started_over(tiny, tmp_path, name):
    start(tiny(), tmp_path / "r")
    (tmp_path / "r" / RECIPE).unlink()
    (tmp_path / "r" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "r" / name).write_text("years of work")
    with pytest.raises(LangevinError, match="not an empty folder"):
        start(tiny(), tmp_path / "r")
    assert (tmp_path / "r" / name).read_text() == "years of work"


def test_files_that_are_called_like_ours_are_not_ours_without_a_marker(tiny, tmp_path):
    for name in (ORIGIN, VOCABULARY):
        (tmp_path / name).write_text("years of work")
    with pytest.raises(LangevinError, match="not an empty folder"):
        start(tiny(), tmp_path)
    assert (tmp_path / ORIGIN).read_text() == "years of work"


@pytest.mark.parametrize("away", [lambda path: path.rename(path.with_name("moved")), shutil.rmtree])
@pytest.mark.parametrize("step", [3, 30])
def test_a_folder_that_is_gone_stops_the_run_and_is_not_made_anew(tiny, tmp_path, away, step):
    trainer = start(tiny("checkpoint_minutes=0"), tmp_path / "r")

    def take_away(trainer):
        if trainer.step == step:
            away(tmp_path / "r")

    with pytest.raises(LangevinError, match="moved or deleted"):
        trainer.run(take_away)
    assert not (tmp_path / "r").exists()
    if (tmp_path / "moved").exists():
        resume(tmp_path / "moved").run()
        assert RunFolder(tmp_path / "moved").progress().finished


def test_what_dead_processes_left_goes_and_what_living_ones_write_stays(tiny, tmp_path):
    start(tiny(), tmp_path / "r").save()
    names = {name: tmp_path / "r" / f".{name}.00ff00ff.tmp"
             for name in (ORIGIN, "generated.safetensors", "report.html", "collection.json")}
    for path in names.values():
        path.write_text("half")
    long_ago = time.time() - 86_400
    os.utime(names["report.html"], (long_ago, long_ago))
    resume(tmp_path / "r")
    assert [name for name, path in names.items() if path.exists()] == ["collection.json"]


def test_every_file_is_read_once(finished_run, monkeypatch):
    folder = RunFolder(finished_run)
    read = []
    plain = Path.open

    def note_and_open(self, *arguments, **options):
        read.append(self.name)
        return plain(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", note_and_open)
    for _ in range(3):
        assert folder.recipe
        assert folder.vocabulary
        assert folder.facts
    assert sorted(name for name in read if name in (RECIPE, ORIGIN, VOCABULARY)) == [
        ORIGIN, RECIPE, VOCABULARY]
    assert files.no_file(finished_run / RECIPE) == ""
