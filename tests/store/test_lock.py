"""One writer for each folder: the second is told who, where, since when; readers do not wait; the
dead let go."""

import json
import os
import platform
import signal
import subprocess
import sys
import time

import pytest

from langevin.errors import LangevinError
from langevin.store.folder import RunFolder
from langevin.store.lock import LOCK, lock_folder
from langevin.training.chains import start_chains
from langevin.errors import Interrupted
from langevin.training.session import resume, start

HOLD = """
import pathlib, sys, time
from langevin.store.lock import lock_folder
with lock_folder(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(300)
"""


@pytest.fixture
def holder():
    """Starts a process that has the lock of a folder until the test ends."""
    started = []

    def hold(folder):
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_second_is_told_who_where_and_since_when_and_the_dead_let_go(tmp_path, holder):
    process = holder(tmp_path)
    said = json.loads((tmp_path / LOCK).read_text())
    with pytest.raises(LangevinError) as refused:
        lock_folder(tmp_path)
    for part in (str(tmp_path), f"process {process.pid}", platform.node(), said["since"], "only read need not wait"):
        assert part in str(refused.value)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_a_patient_one_waits_for_the_end_of_another(tmp_path, holder):
    process = holder(tmp_path)
    process.kill()
    lock_folder(tmp_path, patience=60).release()


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"pid": "x"}', b'{"pid": 1}', b"9" * 5000])
def test_an_unreadable_note_is_no_hindrance(tmp_path, content):
    with lock_folder(tmp_path):
        (tmp_path / LOCK).write_bytes(content)
        with pytest.raises(LangevinError, match="another process does"):
            lock_folder(tmp_path)


def test_a_note_cannot_steer_the_terminal(tmp_path):
    with lock_folder(tmp_path):
        (tmp_path / LOCK).write_text(json.dumps({"pid": 1, "host": "\x1b[2J", "since": "\n"}))
        with pytest.raises(LangevinError) as refused:
            lock_folder(tmp_path)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_the_lock_never_writes_through_a_link(tmp_path, make):
    (tmp_path / "run").mkdir()
    precious = tmp_path / "precious.txt"
    precious.write_text("years of work")
    make(precious, tmp_path / "run" / LOCK)
    with pytest.raises(LangevinError, match=r"link|lock"):
        lock_folder(tmp_path / "run")
    assert precious.read_text() == "years of work"


def test_a_forked_child_does_not_think_that_it_has_the_lock(tmp_path):
    lock = lock_folder(tmp_path)
    child = os.fork()
    if not child:
        os._exit(int(lock.alive))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lock.alive
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "nobody else to write" in refused.stderr


def test_writers_are_refused_and_readers_are_not(cli, tiny, tmp_path, holder):
    run = tmp_path / "run"
    recipe = tiny()
    start(recipe, run).run()
    whole = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != LOCK}
    holder(run)
    for arguments in [
        ("resume", run), ("train", "--text", recipe.data.corpus, "--out", run, "--overwrite"),
        ("train", "--text", recipe.data.corpus, "--out", run, "--overwrite", "--chains", 2),
    ]:
        code, _, messages = cli(*arguments)
        assert code == 2
        assert "nobody else to write" in messages
    assert cli("show", run)[0] == 0
    assert cli("evaluate", run, "--select", "thinned")[0] == 0
    assert {path: path.read_bytes() for path in whole} == whole


def test_chains_have_one_writer(cli, tiny, tmp_path, holder):
    folder = start_chains(tiny(), tmp_path / "c", 2)
    process = holder(folder.path)
    code, _, messages = cli("resume", folder.path)
    assert code == 2
    assert f"process {process.pid}" in messages
    holder(folder.chains[1].path)
    process.kill()
    process.wait()
    with pytest.raises(LangevinError, match="chain-1"):
        start_chains(tiny(), tmp_path / "c", 3, overwrite=True)
    assert len(RunFolder(tmp_path / "c").chains) == 2


def test_an_export_that_is_being_replaced_is_left_alone(cli, finished_run, tmp_path, holder):
    assert cli("export", finished_run, tmp_path / "e", "--no-evaluate")[0] == 0
    holder(tmp_path / "e")
    code, _, messages = cli("export", finished_run, tmp_path / "e", "--no-evaluate", "--overwrite")
    assert code == 2
    assert "nobody else to write" in messages
    assert cli("evaluate", finished_run, "--select", "thinned")[0] == 0


def test_a_run_that_trains_in_another_process_is_not_resumed(tiny, tmp_path):
    start(tiny("epochs=200", "sample_every=1", "checkpoint_minutes=0"), tmp_path / "r").save()
    command = [sys.executable, "-m", "langevin", "resume", str(tmp_path / "r"), "--quiet"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not RunFolder(tmp_path / "r").progress().step:
            assert time.monotonic() < deadline
            assert first.poll() is None
            time.sleep(0.05)
        first.send_signal(signal.SIGSTOP)  # so that it does not end first
        with pytest.raises(LangevinError, match=f"process {first.pid}"):
            resume(tmp_path / "r")
    finally:
        first.kill()
        first.wait()
    resume(tmp_path / "r")


def test_in_one_process_the_newer_trainer_takes_over_and_the_older_is_told(tiny, tmp_path):
    older = start(tiny(), tmp_path / "r")
    newer = resume(tmp_path / "r")
    with pytest.raises(LangevinError, match="went on elsewhere"):
        older.save()
    newer.run()

    busy = start(tiny(), tmp_path / "b")

    def resume_meanwhile(trainer):
        with pytest.raises(LangevinError, match="this process"):
            resume(tmp_path / "b")

    busy.run(resume_meanwhile)


def test_a_trainer_goes_on_unless_the_folder_has_changed(tiny, tmp_path):
    trainer = start(tiny(), tmp_path / "r")
    for step in (3, 5):
        with pytest.raises(Interrupted):
            trainer.run(stop=lambda step=step: trainer.step == step)
        assert RunFolder(tmp_path / "r").progress().step == step
    resume(tmp_path / "r").run()
    with pytest.raises(LangevinError, match="went on elsewhere"):
        trainer.run()
    assert RunFolder(tmp_path / "r").progress().finished
