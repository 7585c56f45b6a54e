"""One fresh process: prepare it (or not, LANGEVIN_STARTUP=0), train for some seconds, say how long
a step took."""

from __future__ import annotations

import json
import resource
import sys
from functools import partial
from pathlib import Path

from langevin.process import prepare_process

from .contenders import OURS, TrainingStep
from .shapes import Shape


def main(request: str) -> None:
    prepared = prepare_process()
    asked = json.loads(request)
    step = TrainingStep(Shape(**asked["shape"]), partial(OURS["SGLD"], fused=True))
    step(2)
    steps = max(3, round(asked["seconds"] / (step(2) / 2)))
    before = resource.getrusage(resource.RUSAGE_SELF)
    took = step(steps)
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({
        "seconds_per_step": took / steps,
        "page_faults_per_step": (after.ru_minflt - before.ru_minflt) / steps,
        "kernel_seconds_per_step": (after.ru_stime - before.ru_stime) / steps,
        "peak_resident_megabytes": peak_megabytes(),
        "startup": str(prepared),
    }))  # fmt: skip


def peak_megabytes() -> float | None:
    """Most memory that was ever resident. Not getrusage's, which a child takes over from its parent
    on Linux."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)


if __name__ == "__main__":
    main(sys.argv[1])
