"""Chains on two nodes in network namespaces of their own: they meet over a wire, not over the
loopback."""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile

import pytest

from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.cluster import QUIET
from langevin.training.session import start
from tests.conftest import SET, TINY
from tests.training.test_loop import fingerprint

FIRST, SECOND, PORT = "10.213.7.1", "10.213.7.2", 6399


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def two_namespaces():
    """Their names; a cable is between them."""
    names = [f"lv{secrets.token_hex(3)}{end}" for end in "ab"]
    try:
        if not all(ip("netns", "add", name) for name in names):
            pytest.skip("no network namespaces here")
        ends = ["link", "add", "wire", "netns", names[0], "type", "veth", "peer", "name", "wire", "netns", names[1]]
        assert ip(*ends)
        for name, address in zip(names, (FIRST, SECOND), strict=True):
            assert ip("-n", name, "addr", "add", f"{address}/24", "dev", "wire")
            assert all(ip("-n", name, "link", "set", device, "up") for device in ("lo", "wire"))
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


@contextlib.contextmanager
def node_in(namespace, environment, *words):
    process = subprocess.Popen(
        ["ip", "netns", "exec", namespace, "ray", "start", "--num-cpus=1", "--block", *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        said = []
        assert any("runtime started" in said[-1] for line in process.stdout if not said.append(line)), said
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("ip"), reason="no ip command")
def test_chains_on_two_machines_have_the_bits_of_plain_runs(text_file, tmp_path):
    pytest.importorskip("ray")
    temporary = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    environment = os.environ | QUIET | {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_TMPDIR": temporary,
    }  # fmt: skip
    settings = [*SET, "--set", "pool=none"]
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, temporary, ignore_errors=True)
        first, second = stack.enter_context(two_namespaces())
        head = ("--head", f"--port={PORT}", f"--node-ip-address={FIRST}", "--include-dashboard=false")
        stack.enter_context(node_in(first, environment, *head))
        join = (f"--address={FIRST}:{PORT}", f"--node-ip-address={SECOND}")
        stack.enter_context(node_in(second, environment, *join))
        done = subprocess.run(
            ["ip", "netns", "exec", first, sys.executable, "-m", "langevin", "train", "--text", text_file, "--out",
             tmp_path / "r", "--chains", "2", "--on", f"{FIRST}:{PORT}", *settings],
            env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    for seed, chain in enumerate(RunFolder(tmp_path / "r").chains):
        start(load_recipe("text", [f"corpus={text_file}", *TINY, "pool=none", f"seed={seed}"]), tmp_path / f"{seed}").run()
        assert fingerprint(chain.path) == fingerprint(tmp_path / f"{seed}")
