"""How fast this processor multiplies matrices, which is most of what a training run here does.

The answers are measured, not looked up: a processor may know bfloat16 and be slow at it, or not know it at all, and
then torch takes several times as long as in float32. Or it announces more than it can do.
"""

from __future__ import annotations

import math
import platform
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import torch

ROWS, WIDTH = 200, 512
TRIES, ENOUGH = 30, 0.1
"""So many products, or fewer once so many seconds are gone: without the instructions, one in bfloat16 can take a tenth
of a second, 80 times as long as in float32."""
CLEARLY = 1.5
"""Only what takes so many times as long is called slow: a close race would be decided by other work on the machine."""
REFERENCE = 1.15e-3
"""Seconds of the product below in float32 on the core on which the minutes of `reproduce/targets.py` were measured
(AVX2, 2.45 GHz)."""
TRIAL = f"import torch; left, right = (torch.ones(n, {WIDTH}).bfloat16() for n in ({ROWS}, {WIDTH})); left @ right"
REMEDY = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
"""In the environment it keeps torch from the instructions that are announced and do not work."""


def processor_name() -> str:
    """As it calls itself, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


@cache
def bfloat16_works() -> bool:
    """Whether a product in bfloat16 can be made at all.

    Virtual machines were seen that announce AMX, the tiles of Intel's processors, and hide how large a tile is. torch
    believes them, and its product raises an error or ends the whole process by an illegal instruction. So where there
    are tiles, a process of its own tries first, which takes as long as loading torch.
    """
    if not getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)():
        return True
    return subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, check=False).returncode == 0


@cache
def product_seconds(precision: str) -> float:
    """Seconds of a product [200, 512] × [512, 512] on one thread: the best of some, as other work may interfere.

    Infinite where it cannot be made.
    """
    if precision == "bfloat16" and not bfloat16_works():
        return math.inf
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        left, right = (torch.ones(rows, WIDTH, dtype=getattr(torch, precision)) for rows in (ROWS, WIDTH))
        taken = list[float]()
        while len(taken) < 2 or (len(taken) < TRIES and sum(taken) < ENOUGH):  # the first is slower
            begun = time.perf_counter()
            left @ right
            taken.append(time.perf_counter() - begun)
    finally:
        torch.set_num_threads(threads)
    return min(taken)


def bfloat16_is_slow() -> bool:
    """Whether products in bfloat16 clearly take longer here than in float32."""
    return product_seconds("bfloat16") > CLEARLY * product_seconds("float32")


def slowness(precision: str) -> float:
    """How many times as long as on the reference core a run takes on one core of this machine."""
    return product_seconds(precision) / REFERENCE
