"""Commands side by side: how many, in which order, with how many threads, and that none outlives
its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.training.jobs import Job, abandoned, langevin_command, run_side_by_side

SLOW = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def job(tmp_path, name, code):
    return Job(name, [sys.executable, "-c", code], tmp_path / f"{name}.log")


def alive(pid):
    """Running, and not merely waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(holds, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_all_run_and_never_more_than_asked(tmp_path):
    note = "import time; print(time.monotonic()); time.sleep(0.5); print(time.monotonic())"
    jobs = [job(tmp_path, f"j{k}", note) for k in range(4)]
    ended, looks = [], []
    run_side_by_side(jobs, 2, lambda: looks.append(1), lambda job, code: ended.append(job))
    assert {done.name for done in ended} == {"j0", "j1", "j2", "j3"}
    spans = [tuple(map(float, j.log.read_text().split())) for j in jobs]
    assert max(sum(a <= start < b for a, b in spans) for start, _ in spans) == 2
    assert len(looks) >= 4


def test_one_thread_each(tmp_path):
    one = job(tmp_path, "one", "import os; print(os.environ['OMP_NUM_THREADS'], os.environ['NUMBA_NUM_THREADS'])")
    run_side_by_side([one], 1)
    assert one.log.read_text().split() == ["1", "1"]


def test_a_failure_stops_the_others_and_tells_its_last_words(tmp_path):
    slow = job(tmp_path, "slow", SLOW)
    bad = job(tmp_path, "bad", f"""import pathlib, sys, time
while not pathlib.Path({str(slow.log)!r}).read_text(): time.sleep(0.02)
print('the loss became nan'); sys.exit(2)""")
    never = job(tmp_path, "never", "print('started')")
    with pytest.raises(LangevinError, match=r"bad ended with exit code 2: the loss became nan"):
        run_side_by_side([slow, bad, never], 2)
    assert not alive(int(slow.log.read_text()))
    assert not never.log.exists()


def test_an_exception_in_a_callback_stops_all(tmp_path):
    slow = job(tmp_path, "slow", SLOW)

    def look():
        if slow.log.exists() and slow.log.read_text():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_side_by_side([slow], 1, look)
    assert not alive(int(slow.log.read_text()))


def test_what_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("langevin.training.jobs.GRACE", 0.3)
    deaf = job(tmp_path, "deaf", f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLOW}")
    bad = job(tmp_path, "bad", f"""import pathlib, sys, time
while not pathlib.Path({str(deaf.log)!r}).read_text(): time.sleep(0.02)
sys.exit(1)""")
    with pytest.raises(LangevinError, match="it said nothing"):
        run_side_by_side([deaf, bad], 2)
    assert not alive(int(deaf.log.read_text()))


PARENT = """
import sys
from pathlib import Path
from langevin.training.jobs import Job, run_side_by_side
child = '''
import os, time
from langevin.training.jobs import abandoned
print(os.getpid(), flush=True)
while not abandoned(): time.sleep(0.02)
'''
run_side_by_side([Job("child", [sys.executable, "-c", child], Path(sys.argv[1]))], 1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_child_outlives_its_parent(tmp_path, number):
    log = tmp_path / "child.log"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(log)], stderr=subprocess.DEVNULL)
    wait_until(lambda: log.exists() and log.read_text())
    child = int(log.read_text())
    assert alive(child)
    parent.send_signal(number)
    parent.wait(20)
    wait_until(lambda: not alive(child), 5)


def test_a_process_without_such_a_parent_is_not_abandoned(monkeypatch):
    monkeypatch.delenv("LANGEVIN_PARENT", raising=False)
    assert not abandoned()
    monkeypatch.setenv("LANGEVIN_PARENT", str(os.getppid()))
    assert not abandoned()
    monkeypatch.setenv("LANGEVIN_PARENT", str(os.getpid()))
    assert abandoned()


def test_own_command_runs():
    done = subprocess.run(langevin_command("recipes", "--json"), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert "wp-lstm-psgld" in done.stdout


def test_impossible_numbers_and_commands_are_explained(tmp_path):
    with pytest.raises(LangevinError, match="at least 1, got 0"):
        run_side_by_side([], 0)
    with pytest.raises(LangevinError, match="cannot start x"):
        run_side_by_side([Job("x", [str(tmp_path / "absent")], tmp_path / "x.log")], 1)
