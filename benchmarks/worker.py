"""Peers in a process and an environment of their own, which sleeps on a pipe while others are
measured.

One JSON line each way: {"contender", "shape", "steps"} in, {"seconds"} or {"error"} out. The first
line out says which contenders there are and with what versions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .shapes import Shape
from .timing import Contender, Turn

ROOT = Path(__file__).resolve().parents[1]
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**33), "MALLOC_TOP_PAD_": str(2**26)}
"""The allocator settings of `langevin.process`, for processes that do not import langevin."""


class Worker:
    """The parent's end of the pipe."""

    def __init__(self, python: Path, module: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", f"benchmarks.{module}", str(threads)], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | KEEP_MEMORY,
        )
        try:
            hello = self._read()
        except RuntimeError:
            self.close()
            raise
        self.names: list[str] = hello["contenders"]
        self.versions: dict[str, str] = hello["versions"]

    def contenders(self, shape: Shape) -> list[Contender]:
        def turn(name: str) -> Turn:
            return lambda steps: self._ask(name, shape, steps)

        return [Contender(name, turn(name)) for name in self.names]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def _ask(self, name: str, shape: Shape, steps: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"contender": name, "shape": asdict(shape), "steps": steps}) + "\n")
        self.process.stdin.flush()
        return float(self._read()["seconds"])

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the worker ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def serve(builders: dict[str, Callable[[Shape], Turn]], packages: list[str]) -> None:
    """The worker's end: build a contender when it is first asked for, keep those of one shape, run,
    answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    say(answers, {"contenders": list(builders), "versions": {name: version(name) for name in packages}})
    turns: dict[str, Turn] = {}
    at: Shape | None = None
    for line in sys.stdin:
        request = json.loads(line)
        shape, name = Shape(**request["shape"]), request["contender"]
        if shape != at:
            turns.clear()
            at = shape
        try:
            if name not in turns:
                turns[name] = builders[name](shape)
            say(answers, {"seconds": turns[name](request["steps"])})
        except Exception as error:  # whatever it is, the parent must hear of it
            say(answers, {"error": f"{type(error).__name__}: {error}"})


def say(answers: Any, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()
