"""What a run remembers of the processor it was made on."""

from __future__ import annotations

import platform
from pathlib import Path


def processor_name() -> str:
    """As it calls itself, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
