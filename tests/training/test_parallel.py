"""torchrun and one chain: the curve of one process, the same bits after any death, one clear line
for what is wrong."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.parallel import refuse_lazy_rows, refuse_together
from langevin.training.session import resume, start
from tests.conftest import TINY
from tests.training.test_loop import fingerprint

SCRIPT = Path(__file__).with_name("process_of_two.py")
SETTINGS = ("layers=2", "dropout=0.3", "clip=norm", "sample=mean", "checkpoint_minutes=0",
            "sample_every=0.01", "batch_size=5")


@pytest.fixture(scope="module")
def recipe(text_file, tmp_path_factory):
    """Validation after every step, and 5 rows for 2 processes."""
    path = tmp_path_factory.mktemp("recipe") / "night.toml"
    path.write_text(load_recipe("text", [f"corpus={text_file}", *TINY, *SETTINGS]).to_toml())
    return path


def torchrun(*arguments, restarts=0):
    """Two processes; what they printed, what they said, and torchrun's exit code."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               f"--max-restarts={restarts}", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    said = [line for line in ran.stderr.splitlines() if line.startswith("langevin: ")]
    return ran.returncode, ran.stdout, said, ran.stderr


@pytest.fixture(scope="module")
def pair(recipe, tmp_path_factory):
    """A run that two processes trained to its end, and what the command printed."""
    out = tmp_path_factory.mktemp("pair") / "run"
    code, printed, said, stderr = torchrun("-m", "langevin", "train", recipe, "--out", out)
    assert (code, said) == (0, []), stderr
    return out, printed


def curve(folder):
    lines = RunFolder(folder).progress().history
    return [line.train_loss for line in lines], [line.valid["nll"] for line in lines]


def assert_close(one, other):
    for ours, theirs in zip(curve(one), curve(other), strict=True):
        assert len(ours) >= 50
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_two_processes_have_the_curve_of_one(pair, recipe, tmp_path):
    start(load_recipe(recipe), tmp_path / "one").run()
    assert_close(pair[0], tmp_path / "one")
    assert pair[1].count("next: ") == 1  # the first process alone speaks
    assert RunFolder(pair[0]).progress().processes == 2


def test_killed_processes_go_on_to_the_same_bits(pair, recipe, tmp_path):
    """torchrun starts all anew once, and goes on with the run that it began; then there are no more
    attempts."""
    folder = tmp_path / "run"
    code, _, said, stderr = torchrun(SCRIPT, recipe, folder, "kill", restarts=1)
    assert code == 1
    assert "exitcode: -9" in stderr
    assert ["another process of this run ended" in line for line in said] == [True, True]
    assert 20 <= RunFolder(folder).progress().step <= 31
    shutil.copytree(folder, tmp_path / "alone")
    code, *_, stderr = torchrun("-m", "langevin", "resume", folder, "--quiet")
    assert code == 0, stderr
    assert fingerprint(folder) == fingerprint(pair[0])
    resume(tmp_path / "alone").run()
    assert_close(tmp_path / "alone", pair[0])
    assert fingerprint(tmp_path / "alone") != fingerprint(pair[0])


def test_who_goes_on_with_fewer_is_told(pair, tmp_path, caplog):
    shutil.copytree(pair[0], tmp_path / "run")
    resume(tmp_path / "run")
    assert "2 processes trained this run so far, 1 go on: the results agree to rounding" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-m", "langevin", "train", "{recipe}", "--set", "accumulate=3"],
         r"expected at most 5 pieces of a batch.*2 processes × accumulate = 3"),
        ([SCRIPT, "{recipe}", "{out}", "lose"], r"night\.txt"),
    ],
    ids=["few rows", "no data"],
)  # fmt: skip
def test_one_line_for_all_processes(recipe, tmp_path, arguments, expected):
    out = tmp_path / "run"
    given = [str(a).format(recipe=recipe, out=out) for a in arguments]
    code, printed, said, stderr = torchrun(*given, *(["--out", out] if given[0] == "-m" else []))
    assert (code, printed, len(said)) == (1, "", 1), stderr
    assert re.search(expected, said[0])
    assert re.search(r"exitcode\s*: 2", stderr)
    assert "langevin/training" not in stderr
    assert not out.exists()


def test_weights_that_differ_stop_the_run(recipe, tmp_path):
    code, _, said, stderr = torchrun(SCRIPT, recipe, tmp_path / "run", "nudge")
    assert (code, len(said)) == (1, 1), stderr
    assert "the weights of process 1 are not those of process 0 at step 8" in said[0]
    assert RunFolder(tmp_path / "run").progress().step == 7


def test_what_takes_one_process_refuses_several(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(LangevinError, match="expected one process for several chains, torchrun started 2"):
        refuse_together("several chains")


def test_lazy_rows_are_refused():
    with pytest.raises(LangevinError, match=r"expected dense gradients.*sparse=False"):
        refuse_lazy_rows([torch.zeros(2, 2), torch.zeros(2, 2).to_sparse()])
