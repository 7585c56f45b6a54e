"""Records of what was measured: one for each set, seed and arm, in a file that can be gone on
with."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langevin.files import write_atomic
from langevin.store.manifest import commit

Record = dict[str, Any]
Key = tuple[str, int, str]


class Records:
    """All records of one file, written after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        held: list[Record] = json.loads(path.read_text("utf-8")) if path.exists() else []
        self.held = {key_of(record): record for record in held}

    def find(self, name: str, seed: int, arm: str) -> Record | None:
        return self.held.get((name, seed, arm))

    def put(self, record: Record) -> None:
        self.held[key_of(record)] = record
        ordered = [self.held[key] for key in sorted(self.held)]
        lines = ",\n".join(json.dumps(one, allow_nan=False) for one in ordered)
        write_atomic(self.path, f"[\n{lines}\n]\n".encode())


def key_of(record: Record) -> Key:
    return record["set"], record["seed"], record["arm"]


def about() -> Record:
    """Where and with what it was measured."""
    return {"commit": commit(), "machine": processor(), "python": platform.python_version()}


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


class Clock:
    """Seconds of this process's processor time, and of the wall."""

    cpu = wall = 0.0


@contextmanager
def clocked() -> Iterator[Clock]:
    clock, cpu, wall = Clock(), time.process_time(), time.perf_counter()
    try:
        yield clock
    finally:
        clock.cpu, clock.wall = time.process_time() - cpu, time.perf_counter() - wall
