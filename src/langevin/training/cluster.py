"""A Ray cluster: joined with its token, or started here; its nodes looked at before work goes
there."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..process import available_cores
from ..store.folder import MARKER
from . import node

AUTO, OWN = "auto", "local"
"""Ray's words for the cluster that runs on this machine, and for a new one."""
ADDRESS = re.compile(r"(?:ray://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
LIMIT = 30.0
"""Seconds in which a cluster, and each of its nodes, must answer."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0"}
"""No reports to Ray's makers, no warnings on the terminal."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray then takes 127.0.0.1 for what it is, and not for the address of this machine in its
network."""
REACH = """
import sys
import ray
ray.init(sys.argv[1], log_to_driver=False, logging_level="error")
"""
"""A program that ends well if there is a cluster; a process of its own, as Ray's attempts may
neither end nor keep quiet."""
STORE = 100 << 20
"""Bytes of shared memory of a Ray of our own: only exit codes go through it."""


def import_ray() -> Any:
    """Ray, loaded where it was asked for."""
    try:
        import ray
    except ImportError:
        raise LangevinError("--on ray needs the package ray, which is not installed; "
                            "pip install 'langevin[cluster]'") from None
    return ray


def parse_address(on: str) -> str:
    """What Ray calls the cluster that `--on` names."""
    if on == "ray":
        return os.environ.get("RAY_ADDRESS") or AUTO
    if ADDRESS.fullmatch(on):
        return on
    raise LangevinError(f"expected --on local, ray, ray://HOST:PORT or HOST:PORT, got {on!r}")


@contextlib.contextmanager
def join_cluster(on: str) -> Iterator[Any]:
    """Ray, connected to the cluster that `--on` names; where none is named and none runs here, to
    one of our own."""
    address = parse_address(on)
    with environment(QUIET | token_mode(address)):
        ray = import_ray()
        logging.getLogger("ray").setLevel(logging.ERROR)
        given = ADDRESS.fullmatch(address)
        near = LOOPBACK if given and given["host"] in ("127.0.0.1", "localhost") else {}
        quiet = {"log_to_driver": False, "logging_level": "error"}
        with environment(near):
            if reach(address):
                ray.init(address, **quiet)
            else:
                start_own(ray, quiet)
            try:
                yield ray
            finally:
                ray.shutdown()


def start_own(ray: Any, quiet: dict[str, Any]) -> None:
    """On this machine alone: bound to the loopback, with a token of its own where there is none
    yet."""
    with environment(LOOPBACK):
        ray.init("local", num_cpus=available_cores(), object_store_memory=STORE, include_dashboard=False,
                 _node_ip_address="127.0.0.1", **quiet)


@contextlib.contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """These variables while it lasts; those that are set already stay as they are."""
    ours = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def token_mode(address: str) -> dict[str, str]:
    """Token authentication, unless it was switched off on purpose; a cluster that was named needs
    its token."""
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return {}
    known = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if not known and not (Path.home() / ".ray" / "auth_token").is_file():
        if address not in (AUTO, OWN):
            raise no_token(address, "found none")
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    return {"RAY_AUTH_MODE": "token"}


def no_token(address: str, found: str) -> LangevinError:
    where = "that runs here" if address == AUTO else f"at {address}"
    instead = f", or set RAY_ADDRESS={OWN} for a new one" if address == AUTO else ""
    return LangevinError(f"expected the token of the Ray cluster {where}, {found}; put it into RAY_AUTH_TOKEN or "
                         f"~/.ray/auth_token ('ray get-auth-token' on the cluster tells it){instead}")


def reach(address: str) -> bool:
    """Whether a cluster answers there; a named one that does not is refused, in time and in one
    line."""
    if address == OWN:
        return False
    if named := ADDRESS.fullmatch(address):
        try:
            socket.create_connection((named["host"].strip("[]"), int(named["port"])), LIMIT / 3).close()
        except (OSError, OverflowError) as error:
            raise no_cluster(address, str(error)) from None
    with tempfile.TemporaryFile("w+") as said:
        probe = subprocess.Popen([sys.executable, "-P", "-c", REACH, address], stdout=said, stderr=said,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + LIMIT
        try:
            while probe.poll() is None and time.monotonic() < deadline and "AuthToken" not in said_so_far(said):
                time.sleep(0.1)
            code, words = probe.returncode, said_so_far(said)
        finally:
            probe.kill()
            probe.wait()
    if code == 0:
        return True
    if "AuthToken" in words:
        raise no_token(address, "got another or none")
    if address == AUTO:
        return False
    lines = words.strip().splitlines()
    why = f"no answer in {LIMIT:.0f} seconds" if code is None else lines[-1] if lines else f"exit code {code}"
    raise no_cluster(address, why)


def no_cluster(address: str, why: str) -> LangevinError:
    return LangevinError(f"expected a Ray cluster at {address}, got {why}; see that it runs and can be reached, "
                         f"or leave --on out to train on this machine")


def said_so_far(file: Any) -> str:
    file.seek(0)
    return str(file.read())


def nodes_of(ray: Any) -> dict[str, dict[str, Any]]:
    """The nodes that can work, by Ray's number of each."""
    return {one["NodeID"]: one for one in ray.nodes() if one["Alive"] and one["Resources"].get("CPU")}


def name_of_node(one: dict[str, Any]) -> str:
    """As an administrator knows it."""
    address, host = one["NodeManagerAddress"], one["NodeManagerHostname"]
    return f"{one['NodeName']} ({host}, {address})" if one["NodeName"] != address else f"{host} ({address})"


def check_nodes(ray: Any, folders: Sequence[Path]) -> None:
    """Refuse a cluster where a node has other versions than we, or does not see the folders that we
    see."""
    found = nodes_of(ray)
    if not found:
        raise LangevinError("expected a Ray cluster with nodes that can work, got one without processors; add a node")
    with contextlib.ExitStack() as files:
        sights = [files.enter_context(seen_file(existing(folder))) for folder in folders]
        ray.cloudpickle.register_pickle_by_value(node)
        try:
            asked = {number: ask(ray, number, sights) for number in found}
        finally:
            ray.cloudpickle.unregister_pickle_by_value(node)
        ours = node.describe_node(sights)
        for number, reference in asked.items():
            compare_node(name_of_node(found[number]), await_answer(ray, reference, found[number]), ours, sights)


def ask(ray: Any, number: str, sights: list[tuple[str, str]]) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(number, soft=False)
    look = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(node.describe_node)
    return look.remote(sights)


def await_answer(ray: Any, reference: Any, one: dict[str, Any]) -> Any:
    try:
        return ray.get(reference, timeout=2 * LIMIT)
    except ray.exceptions.GetTimeoutError:
        why = f"none in {2 * LIMIT:.0f} seconds"
    except ray.exceptions.RayError as error:
        why = str(error).strip().splitlines()[-1]
    raise LangevinError(f"expected an answer of node {name_of_node(one)}, got {why}; mend it, or take it out of the "
                        f"cluster")


Answer = tuple[dict[str, str], list[str]]


def compare_node(name: str, theirs: Answer, ours: Answer, sights: list[tuple[str, str]]) -> None:
    """One line about the first thing in which a node differs."""
    for key, want in ours[0].items():
        got = theirs[0].get(key, "none")
        if got != want and key == "source":
            raise LangevinError(f"expected the same langevin on all nodes, node {name} has another edit of version "
                                f"{ours[0]['langevin']}; install the same one there")
        if got != want:
            raise LangevinError(f"expected {key} {want} on all nodes, as here, node {name} has {got}; install the "
                                f"same one there")
    for (folder, _), want, got in zip(sights, ours[1], theirs[1], strict=True):
        if got != want:
            seen = got if len(got) != len(want) else "another folder of that name"
            raise LangevinError(f"expected storage that all nodes see at {folder}, node {name} sees {seen} there; "
                                f"mount the same one on it, or choose another --out")


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above that is there."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())


@contextlib.contextmanager
def seen_file(folder: Path) -> Iterator[tuple[str, str]]:
    """A file with random content in a folder, as folder and name; named like a marker that is not
    finished."""
    path = folder / f".{MARKER}.{secrets.token_hex(4)}.tmp"
    try:
        path.write_text(secrets.token_hex(16))
    except OSError as error:
        raise LangevinError(f"cannot write in {folder}: {error.strerror}; choose another --out") from None
    try:
        yield str(folder), path.name
    finally:
        path.unlink(missing_ok=True)
