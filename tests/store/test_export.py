"""An exported folder is whole or not there; what it holds is compared when it is read."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.predict.export import export
from langevin.store.export import new_export, read_export
from langevin.store.lock import LOCK
from langevin.store.replacement import sweep_unfinished

FIXTURES = Path(__file__).parents[1] / "fixtures"
DIE = """
import os, pathlib, signal, sys
from langevin.store.export import new_export, write_samples
with new_export(pathlib.Path(sys.argv[1]), overwrite=False) as making:
    write_samples(making, [], float16=False)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_store_imports_nothing_that_trains_or_answers():
    code = "import sys, langevin.store.card; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in loaded.stdout.split() if name.startswith("langevin.")}
    assert rooms <= {"errors", "files", "process", "samplers", "data", "models", "recipe", "store"}


def test_what_a_killed_export_left_goes_with_the_next(finished_run, tmp_path):
    killed = subprocess.run([sys.executable, "-c", DIE, str(tmp_path / "e")], timeout=120)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".e.*.making")
    assert (left / "samples").is_dir()
    with new_export(tmp_path / "e", overwrite=False) as at_work:
        export(finished_run, tmp_path / "f", measure=False)
        sweep_unfinished(tmp_path / "e")
        assert at_work.is_dir()  # of a living process: it stays
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e", "f"]
    assert not (tmp_path / "f" / LOCK).exists()


def test_an_unfinished_folder_with_something_else_in_it_stays(finished_run, tmp_path):
    mine = tmp_path / ".e.00ff00ff.making"
    mine.mkdir()
    (mine / "notes.md").write_text("years of work")
    export(finished_run, tmp_path / "e", measure=False)
    assert (mine / "notes.md").read_text() == "years of work"


@pytest.fixture(scope="module")
def exported(finished_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "e"
    export(finished_run, out, measure=False)
    return out


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "samples/manifest.jsonl"])
def test_every_changed_byte_is_refused_or_says_the_same(exported, tmp_path, name):
    copy = shutil.copytree(exported, tmp_path / "e")
    whole, raw = read_export(copy), (copy / name).read_bytes()
    noticed = 0
    for place in range(0, len(raw), 7):
        (copy / name).write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        try:
            config, recipe, vocabulary = read_export(copy)
        except LangevinError:
            noticed += 1
        else:
            assert (config, recipe, vocabulary.tokens) == (*whole[:2], whole[2].tokens)
    assert noticed > len(raw) // 7 * 0.6


def test_a_newer_format_is_refused_by_its_number(exported, tmp_path):
    copy = shutil.copytree(exported, tmp_path / "e")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"format": 4, "pool": []}))
    with pytest.raises(LangevinError, match=r"format 3 or older in .*config\.json, got format 4"):
        read_export(copy)


@pytest.mark.parametrize("name", ["bytes", "words", "questions", "captions", "chains"])
def test_old_exports_are_read(name):
    config, recipe, vocabulary = read_export(FIXTURES / f"{name}-shared")
    assert (config.format, config.samples) == (1, 4)
    assert config.task == recipe.task
    assert len(vocabulary) > 5
