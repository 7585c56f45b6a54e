"""Chains on a real Ray cluster of two nodes on this machine: same bits, whatever is killed; bad
clusters refused."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.chains import resume_chains, start_chains
from langevin.training.session import resume, start
from tests.conftest import SET, TINY
from tests.training.kills import kill_at_random
from tests.training.test_loop import fingerprint
from tests.training.two_nodes import kill_worker_of, two_nodes, wait_for, writer_of

CLIENT = 10055
"""Port of Ray's client."""
LONG = ["epochs=24", "burn_in=4", "sample_every=4", "pool=none"]
LONGER = ["epochs=96", "burn_in=16", "sample_every=16", "pool=none"]
"""Long enough to do something about it while it runs, on a fast machine too."""


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray")
    with two_nodes(CLIENT) as found:
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


def options(settings):
    return [*SET, *(part for setting in settings for part in ("--set", setting))]


def train(text_file, out, nodes, settings=LONGER):
    return command("train", "--text", text_file, "--out", out, "--chains", 2, "--on", nodes.address,
                   *options(settings), env=nodes.environment)  # fmt: skip


def expect_bits_of_plain_runs(out, text_file, tmp_path, settings=LONGER):
    for chain in RunFolder(out).chains:
        seed = chain.recipe.run.seed
        recipe = load_recipe("text", [f"corpus={text_file}", *TINY, *settings, f"seed={seed}"])
        start(recipe, tmp_path / f"plain-{seed}").run()
        assert fingerprint(chain.path) == fingerprint(tmp_path / f"plain-{seed}")


def begun(out):
    """Every chain has a checkpoint, and some are not finished."""
    paths = [out / f"chain-{number}" for number in range(2)]
    return all((path / "checkpoint.safetensors").exists() for path in paths)


def unfinished(out):
    return [chain.path for chain in RunFolder(out).chains if not chain.progress().finished]


def test_a_killed_worker_costs_nothing_and_a_token_is_needed(nodes, text_file, tmp_path):
    """The same bits as plain runs, after SIGKILL to the process of Ray that watched over a
    chain."""
    process = train(text_file, tmp_path / "r", nodes, LONG)
    wait_for(lambda: begun(tmp_path / "r") or process.poll() is not None)
    killed = unfinished(tmp_path / "r")[0]
    first = writer_of(killed)
    kill_worker_of(killed)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert writer_of(killed) != first
    expect_bits_of_plain_runs(tmp_path / "r", text_file, tmp_path, LONG)
    alone = nodes.environment | {"RAY_AUTH_TOKEN": "", "HOME": str(tmp_path)}
    said = refusal("resume", tmp_path / "r", "--on", nodes.address, env=alone)
    assert "expected the token of the Ray cluster" in said


@pytest.mark.slow
def test_a_killed_node_and_a_killed_process_cost_nothing(text_file, tmp_path):
    with two_nodes() as nodes:
        process = train(text_file, tmp_path / "r", nodes)
        wait_for(lambda: begun(tmp_path / "r") or process.poll() is not None)
        os.kill(writer_of(unfinished(tmp_path / "r")[0]), signal.SIGKILL)
        nodes.kill_second()
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    expect_bits_of_plain_runs(tmp_path / "r", text_file, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_ends_leaves_all_to_be_resumed_anywhere(nodes, text_file, tmp_path, number):
    """By Ctrl-C or outright; one chain then goes on here, all end with the same bits."""
    process = train(text_file, tmp_path / "r", nodes)
    wait_for(lambda: begun(tmp_path / "r") or process.poll() is not None)
    left = unfinished(tmp_path / "r")
    writers = [writer_of(path) for path in left]
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == (130 if number == signal.SIGINT else -9), said
    assert number != signal.SIGINT or "go on with: langevin resume" in said
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in writers))
    assert unfinished(tmp_path / "r")
    resume(left[0]).run()
    again = command("resume", tmp_path / "r", "--on", nodes.address, env=nodes.environment)
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    expect_bits_of_plain_runs(tmp_path / "r", text_file, tmp_path)


@pytest.mark.slow
def test_two_engines_never_write_in_one_folder(nodes, text_file, tmp_path):
    process = train(text_file, tmp_path / "r", nodes)
    wait_for(lambda: begun(tmp_path / "r") or process.poll() is not None)
    assert f"process {process.pid} on" in refusal("resume", tmp_path / "r")
    said = refusal("resume", tmp_path / "r", "--on", nodes.address, env=nodes.environment)
    assert f"process {process.pid} on" in said
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    expect_bits_of_plain_runs(tmp_path / "r", text_file, tmp_path)


@pytest.mark.slow
def test_a_driver_far_away_and_a_wrong_token(nodes, text_file, tmp_path):
    """By Ray's client, as from a machine that is no node."""
    far = f"ray://127.0.0.1:{CLIENT}"
    start_chains(load_recipe("text", [f"corpus={text_file}", *TINY, *LONG]), tmp_path / "r", 2)
    wrong = nodes.environment | {"RAY_AUTH_TOKEN": "b" * 64}
    for on in (nodes.address, far):
        assert "Ray cluster at" in refusal("resume", tmp_path / "r", "--on", on, env=wrong)
    done = command("resume", tmp_path / "r", "--on", far, "--quiet", env=nodes.environment)
    _, said = done.communicate(timeout=300)
    assert done.returncode == 0, said
    assert "ray" not in said.lower()
    expect_bits_of_plain_runs(tmp_path / "r", text_file, tmp_path, LONG)


@pytest.mark.slow
def test_a_node_with_another_version_is_named(text_file, tmp_path):
    about = tmp_path / "site" / "torch-2.0.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.0.0\n")
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    with two_nodes(PYTHONPATH=path) as nodes:
        said = refusal("train", "--text", text_file, "--out", tmp_path / "r", "--chains", 2, "--on",
                       nodes.address, env=nodes.environment)  # fmt: skip
    assert re.search(r"expected torch .* on all nodes, as here, node two .* has 2.0.0", said)
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
@pytest.mark.skipif(subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0,
                    reason="no mount namespaces here")  # fmt: skip
def test_a_node_with_other_storage_is_named(text_file, tmp_path):
    """Its folder of that name is another one, and empty."""
    folder = tmp_path / "shared"
    folder.mkdir()
    with two_nodes(hidden=folder) as nodes:
        said = refusal("train", "--text", text_file, "--out", folder / "r", "--chains", 2, "--on",
                       nodes.address, env=nodes.environment)  # fmt: skip
    assert f"expected storage that all nodes see at {folder}, node two" in said
    assert "sees another folder of that name there" in said
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_a_cluster_of_our_own_is_started_where_none_runs(text_file, tmp_path):
    alone = {"RAY_ADDRESS": "local", "RAY_TMPDIR": tempfile.mkdtemp(prefix="ray", dir="/tmp"), "HOME": str(tmp_path)}
    process = command("train", "--text", text_file, "--out", tmp_path / "r", "--chains", 2, "--on", "ray",
                      *options(LONG), "--quiet", env=alone)  # fmt: skip
    _, said = process.communicate(timeout=300)
    shutil.rmtree(alone["RAY_TMPDIR"])
    assert process.returncode == 0, said
    assert "ray" not in said.lower()
    expect_bits_of_plain_runs(tmp_path / "r", text_file, tmp_path, LONG)


@pytest.mark.slow
def test_twenty_kills_at_random(tmp_path):
    assert kill_at_random(tmp_path, 20, seed=1)["same_bits"]


def test_threads_of_a_chain_are_those_it_asks_of_its_engine(text_file, tmp_path):
    asked = []
    folder = start_chains(load_recipe("text", [f"corpus={text_file}", *TINY]), tmp_path / "r", 2, cpus=2)
    resume_chains(folder, None, engine=lambda jobs, at_once, *_: asked.extend(jobs), gpus=0.5)
    assert [(job.cpus, job.gpus) for job in asked] == [(2, 0.5)] * 2
    assert [chain.recipe.run.threads for chain in folder.chains] == [2, 2]
