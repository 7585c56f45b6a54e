"""Things that only a fresh process shows: the time of an import, and what start-up care does to a
training step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from .shapes import Shape
from .timing import Contender
from .worker import ROOT

IMPORT = """
import sys, time
began = time.perf_counter()
import {module}
print(time.perf_counter() - began)
assert "numba" not in sys.modules, "numba was imported"
"""


def fresh(arguments: list[str], **environment: str) -> str:
    """Standard output of a new Python process."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def import_contenders() -> list[Contender]:
    def turn(module: str) -> Callable[[int], float]:
        return lambda steps: sum(float(fresh(["-c", IMPORT.format(module=module)])) for _ in range(steps))

    return [Contender(f"import {module}", turn(module)) for module in ("torch", "langevin")]


def startup_contenders(shape: Shape, seconds: float, seen: dict[str, Any]) -> list[Contender]:
    """A training step of SGLD with and without start-up care, a new process each time; keeps their
    last words."""

    def turn(flag: str) -> Callable[[int], float]:
        def run(steps: int) -> float:
            request = json.dumps({"shape": asdict(shape), "seconds": seconds})
            for _ in range(steps):
                answer = json.loads(fresh(["-m", "benchmarks.startup_effect", request], LANGEVIN_STARTUP=flag))
                seen[flag] = answer
            return float(answer["seconds_per_step"]) * steps

        return run

    return [Contender("without", turn("0")), Contender("with", turn("1"))]
