"""The process: what the command line does to its own once, before it computes, and how far work is.

Large tensors come and go with every training step. glibc hands their memory back to the kernel and
asks for it again, and the kernel clears every page anew: half of the CPU time of a torch process
can go there. `prepare_process` tells glibc to keep what was freed, and lowers the number of torch
threads to the cores that this process may use. It also spares the process torch's compiler, which
the first optimiser would import, for seconds, only to tell it not to compile the optimiser. Results
keep their bits; the process keeps its peak memory until it ends.

`import langevin` does none of this: a library must not change its host. Call `prepare_process()`
yourself to have it in your own program. The environment variable LANGEVIN_STARTUP=0 switches it
off. `docs/speed.md` has its effect.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from .errors import LangevinError

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
"""Parameters of mallopt, from glibc's malloc.h."""
MEGABYTE = 2**20
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"),
                 Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux tells what a container may take, in its two ways."""
NEVER_COMPILED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
"""Methods of torch's optimisers that import its compiler when they are first called."""


class Progress:
    """Hears how far long work is, and tells nobody; `report.progress` has one that shows it."""

    def begin(self, total: int, parts: str = "samples") -> Callable[[], None]:
        """Work of so many equal parts begins; call what this gives after each of them.

        0 parts: nobody knows how many.
        """
        return lambda: None


SILENT = Progress()


@dataclass(frozen=True)
class Startup:
    """What was done: to memory, in words, and the number of torch threads from now on."""

    memory: str
    threads: int

    def __str__(self) -> str:
        return f"memory: {self.memory}; {self.threads} threads"


def prepare_process() -> Startup:
    """Keep freed memory, use no more threads than there are cores, do without the compiler.

    LANGEVIN_STARTUP=0 leaves all as it was.
    """
    if os.environ.get("LANGEVIN_STARTUP") == "0":
        return Startup("left alone, LANGEVIN_STARTUP=0", torch.get_num_threads())
    spare_the_compiler()
    return Startup(keep_freed_memory(), limit_threads())


def keep_freed_memory() -> str:
    """No separate mapping for large blocks, no return of memory; says what came of it."""
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  # another libc may have a mallopt of another meaning
        mallopt = library.mallopt
    except (AttributeError, OSError, TypeError):
        return "left alone, no glibc"
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    wanted = ((MMAP_MAX, 0), (TRIM_THRESHOLD, -1), (TOP_PAD, 64 * MEGABYTE))  # −1: never trim
    return "freed blocks are kept" if all(mallopt(*pair) for pair in wanted) else "glibc refused"


def limit_threads() -> int:
    """Torch threads, lowered to the available cores unless OMP_NUM_THREADS says; never raised."""
    threads = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ and threads > available_cores():
        threads = available_cores()
        torch.set_num_threads(threads)
    return threads


def spare_the_compiler() -> None:
    """Let optimisers call their methods as they are, as the compiler, once imported, would say."""
    if "torch._dynamo" in sys.modules:
        return
    for name in NEVER_COMPILED:
        method = getattr(getattr(torch.optim.Optimizer, name), "__wrapped__", None)
        if method is not None:
            setattr(method, "__dynamo_disable", method)


def prepare_device(device: str, threads: int | None = None) -> torch.device:
    """The device of this name, refused where it is not there; torch then has so many threads."""
    if threads:
        torch.set_num_threads(threads)
    if device == "cuda" and "LOCAL_RANK" in os.environ:  # each process that torchrun starts has one
        device = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        found = torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise LangevinError(
            f"device {device!r} is not available: {reason}; use --device cpu"
        ) from None
    if found.type == "meta":
        raise LangevinError(
            "expected a device that computes, got 'meta', which only knows shapes; use --device cpu"
        )
    return found


def launcher() -> str | None:
    """Which torchrun started this process, by its host, its number and when it began; None without.

    It stays the same when torchrun starts its processes anew.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    parent, began = os.getppid(), ""
    with contextlib.suppress(OSError, IndexError):  # only Linux tells
        began = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    return " ".join((platform.node(), str(parent), began, os.environ["TORCHELASTIC_RUN_ID"]))


def available_cores() -> int:
    """Cores that this process may run on; a container or `taskset` can make them few."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux tells
        return os.cpu_count() or 1


def physical_memory() -> int | None:
    """Bytes of memory that this machine, or its container, has; None where neither says."""
    found = list[int]()
    with contextlib.suppress(AttributeError, OSError, ValueError):  # no POSIX
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in MEMORY_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such container, or "max"
            found.append(int(path.read_text()))
    return min(found, default=None)


def resident_memory() -> int | None:
    """Bytes of memory that this process holds now; None where nobody says."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):  # only Linux tells
        return None
