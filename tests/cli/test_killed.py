"""Commands that are killed, stopped, or run out of disk lose nothing."""

import os
import resource
import signal
import subprocess
import sys
import time


from langevin.store.folder import RunFolder
from tests.conftest import SET
from tests.training.test_loop import fingerprint


def start_process(*arguments, **options):
    command = [sys.executable, "-c", "from langevin.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=os.environ | {"OMP_NUM_THREADS": "1"}, **options)


OFTEN = "checkpoint_minutes=0.002"
LONG = [*SET, "--set", "epochs=20", "--set", "burn_in=10", "--set", "sample_every=1", "--set", OFTEN]


def wait_for_step(folder, step, process):
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        if (folder / "checkpoint.safetensors").exists() and RunFolder(folder).progress().step >= step:
            return
        time.sleep(0.02)
    raise AssertionError(f"did not reach step {step}: {process.communicate()[0]}")


def test_kill_9_and_ctrl_c_lose_nothing(cli, text_file, tmp_path):
    """A real SIGKILL, then a real SIGINT, then resume: the bits of an uninterrupted run."""
    assert cli("train", "--text", text_file, "--out", tmp_path / "whole", "--quiet", *LONG)[0] == 0
    cut = tmp_path / "cut"
    process = start_process("train", "--text", text_file, "--out", cut, *LONG)
    wait_for_step(cut, 150, process)
    process.kill()
    process.communicate()
    process = start_process("resume", cut)
    wait_for_step(cut, 800, process)
    process.send_signal(signal.SIGINT)
    # after the batch at hand; the rest of the run would take longer
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"go on with: langevin resume {cut}" in output
    assert not RunFolder(cut).progress().finished  # it did not run on to the end first
    assert cli("resume", cut, "--quiet")[0] == 0
    assert fingerprint(cut) == fingerprint(tmp_path / "whole")


def test_full_disk_keeps_what_is_good(text_file, tmp_path):
    """The kernel refuses to let any file grow beyond 200 kB: the first larger write fails as on a
    full disk."""
    out = tmp_path / "run"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # noqa: E731  # one line says it
    process = start_process("train", "--text", text_file, "--out", out, *SET, "--set", "hidden=200", preexec_fn=limit)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 2, output
    assert "cannot write" in output
    assert "Traceback" not in output
    assert RunFolder(out).recipe.model.hidden == 200
    assert not list(out.rglob("*.tmp"))
