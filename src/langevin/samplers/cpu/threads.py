"""Threads for the compiled updates: torch's own OpenMP team where there is one, a pool of Python
threads elsewhere.

Right behind a backward pass torch's worker threads still spin on their cores, for some
milliseconds, in wait of more work. Threads of ours would have to take turns with them (updates took
2.5 times as long); so the work is given to the very threads that wait, which takes microseconds.
torch brings GNU's libgomp on Linux; we ask the dynamic linker for the copy that torch uses and call
its entry point for parallel regions.

A forked child has none of its parent's OpenMP threads, but libgomp does not know and would wait for
them for ever. There, and where there is no libgomp, the work goes to threads that sleep while idle.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

Region = Callable[[int, int, int, int], None]
"""GOMP_parallel(function, data, threads, flags)"""

POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}


def run_kernel(function: int, data: int, *, parallel: bool) -> None:
    """Call a C function void(void *) at an address with this argument, on each of torch's threads
    at once or here."""
    threads = torch.get_num_threads() if parallel else 1
    if threads == 1:
        prototype(function)(data)
    elif (region := openmp()) is not None:
        region(function, data, threads, 0)
    else:
        helpers = [workers(threads - 1).submit(prototype(function), data) for _ in range(threads - 1)]
        prototype(function)(data)
        for helper in helpers:
            # one that never woke up is not waited for: the others have done its work
            if not helper.cancel():
                helper.result()


prototype = functools.cache(ctypes.CFUNCTYPE(None, ctypes.c_void_p))
"""A callable for an address, made once for each; without the GIL, as in all calls of ctypes."""


@functools.cache
def openmp() -> Region | None:
    """The parallel region of the libgomp that torch is bound to, or of what stands in for it; None
    without one.

    Symbols are looked up as they were for torch: among what all of the process shares (a preloaded
    library comes first), then among the libraries that torch depends on.
    """
    if forked:
        return None
    for name in (None, Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"):
        try:
            region: Any = ctypes.CDLL(None if name is None else str(name)).GOMP_parallel
        except (OSError, AttributeError, TypeError):  # TypeError: Windows knows no None
            continue
        region.argtypes, region.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint), None
        return region  # type: ignore[no-any-return]  # ctypes gives Any
    return None


forked = False


def after_fork() -> None:
    global forked
    forked = True
    openmp.cache_clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=after_fork)


def workers(count: int) -> ThreadPoolExecutor:
    """Threads of this process; after a fork the parent's are gone and new ones are made."""
    me = (os.getpid(), count)
    if me not in POOLS:
        POOLS[me] = ThreadPoolExecutor(count, thread_name_prefix="langevin")
    return POOLS[me]
