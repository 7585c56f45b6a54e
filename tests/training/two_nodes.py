"""A Ray cluster of two nodes on this machine, bound to the loopback, with a token; in a process of
its own.

As a program it starts the cluster, says where it is, puts another second node in the place of one
that was killed for each line that it reads, and ends the cluster when its standard input closes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from langevin.training.cluster import LOOPBACK, QUIET

LOCAL = "127.0.0.1"


@dataclass(frozen=True)
class Nodes:
    """A cluster that runs: where, what a driver's environment needs, and the raylet of each
    node."""

    address: str
    environment: dict[str, str]
    raylets: dict[str, int]
    process: subprocess.Popen[str]

    def kill_second(self) -> None:
        os.kill(self.raylets["two"], signal.SIGKILL)

    def replace_second(self) -> None:
        """A new node in the place of the one that was killed."""
        assert self.process.stdin
        assert self.process.stdout
        print(file=self.process.stdin, flush=True)
        said = next(line for line in self.process.stdout if line.startswith("{"))
        self.raylets.update(json.loads(said))


@contextlib.contextmanager
def two_nodes(
    client_port: int = 0, hidden: Path | None = None, **of_second: str
) -> Iterator[Nodes]:
    """The cluster; the second node has these variables, and another folder in the place of
    `hidden`."""
    temporary = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # sockets need short names
    variables = QUIET | LOOPBACK | {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_TMPDIR": str(temporary),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(client_port), str(hidden or ""), json.dumps(of_second)], text=True,
        env=os.environ | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    try:
        said = next((line for line in process.stdout if line.startswith("{")), None)
        assert said, "the cluster did not start"
        told = json.loads(said)
        yield Nodes(told["address"], variables, told["raylets"], process)
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdout.close()
        shutil.rmtree(temporary, ignore_errors=True)


CLONE_NEWNS = 0x00020000
"""From Linux's sched.h."""


def hide(folder: str) -> None:
    """An empty folder in its place, for this process and those it starts from now on."""
    ctypes.CDLL(None).unshare(CLONE_NEWNS)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)


def main(client_port: int, hidden: str, of_second: dict[str, str]) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    common = {"num_cpus": 1, "node_ip_address": LOCAL, "include_dashboard": False}
    client = {"ray_client_server_port": client_port} if client_port else {}
    first = cluster.add_node(node_name="one", **common, **client)
    os.environ.update(of_second)
    if hidden:
        hide(hidden)
    second = cluster.add_node(node_name="two", **common)
    raylets = {name: node.all_processes["raylet"][0].process.pid
               for name, node in (("one", first), ("two", second))}
    print(json.dumps({"address": cluster.address, "raylets": raylets}), flush=True)
    for _ in sys.stdin:
        second = cluster.add_node(node_name="two", **common)
        print(json.dumps({"two": second.all_processes["raylet"][0].process.pid}), flush=True)
    cluster.shutdown()


def wait_for(holds: Callable[[], object], seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def writer_of(chain: Path) -> int:
    """The process that signed the lock of a run folder."""
    return int(json.loads((chain / ".langevin.lock").read_text())["pid"])


def kill_worker_of(chain: Path) -> None:
    """SIGKILL to the worker of Ray below which a chain trains."""
    os.kill(parent_of(writer_of(chain)), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
