"""Chains on a real Ray cluster of two nodes on this machine: same bits, whatever is killed; bad clusters refused."""

import os
import subprocess
import sys

import pytest

from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.session import start
from tests.conftest import SET, TINY
from tests.training.test_loop import fingerprint
from tests.training.two_nodes import kill_worker_of, two_nodes, wait_for, writer_of

LONG = ["epochs=24", "burn_in=4", "sample_every=4", "pool=none"]
LONGER = [part for setting in LONG for part in ("--set", setting)]


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray")
    with two_nodes(client_port=10055) as found:
        yield found


def command(*arguments, env=None, **options):
    """A process of `langevin`, its output kept."""
    return subprocess.Popen(
        [sys.executable, "-m", "langevin", *map(str, arguments)], text=True,
        env=os.environ | {"COLUMNS": "300", "OMP_NUM_THREADS": "1"} | (env or {}),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def refusal(*arguments, env=None):
    """The one line with which a command refuses."""
    process = command(*arguments, env=env)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2, said
    assert len(said.strip().splitlines()) == 1, said
    return said


def train(text_file, out, nodes, *more):
    return command("train", "--text", text_file, "--out", out, "--chains", 2, "--on", nodes.address,
                   *SET, *LONGER, *more, env=nodes.environment)  # fmt: skip


def expect_bits_of_plain_runs(out, text_file, tmp_path):
    for chain in RunFolder(out).chains:
        seed = chain.recipe.run.seed
        recipe = load_recipe("text", [f"corpus={text_file}", *TINY, *LONG, f"seed={seed}"])
        start(recipe, tmp_path / f"plain-{seed}").run()
        assert fingerprint(chain.path) == fingerprint(tmp_path / f"plain-{seed}")


def begun(out):
    """Every chain has a checkpoint, and some are not finished."""
    paths = [out / f"chain-{number}" for number in range(2)]
    return all((path / "checkpoint.safetensors").exists() for path in paths)


def unfinished(out):
    return [chain.path for chain in RunFolder(out).chains if not chain.progress().finished]


def test_a_killed_worker_costs_nothing_and_a_token_is_needed(nodes, text_file, tmp_path):
    """The same bits as plain runs, after SIGKILL to the process of Ray that watched over a chain."""
    process = train(text_file, tmp_path / "r", nodes, "--json")
    wait_for(lambda: begun(tmp_path / "r") or process.poll() is not None)
    killed = unfinished(tmp_path / "r")[0]
    first = writer_of(killed)
    kill_worker_of(killed)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert writer_of(killed) != first
    expect_bits_of_plain_runs(tmp_path / "r", text_file, tmp_path)
    alone = nodes.environment | {"RAY_AUTH_TOKEN": "", "HOME": str(tmp_path)}
    said = refusal("resume", tmp_path / "r", "--on", nodes.address, env=alone)
    assert "expected the token of the Ray cluster" in said
