"""How a compiled kernel finds its work: one table of 64-bit words for all parameters of a launch.

    0 next item | 1 items | 2 items at once | 3 scratch | 4-8 seed (two words), step, stream, noisy
    | 9-18 constants 19… one line for each parameter: first item, size, number, addresses of up to five tensors and of the mean of its
    prior (0: it has none); at the end a line that holds nothing but the number of all items

An item is a block of elements or a row. Every thread calls the kernel with the address of the
table, takes some items at a time by adding to word 0, and returns when there are no more: nobody
need know how many threads there are, and a core that is busy elsewhere holds up no more than what
it took. The type that the address points to is that of the weights and compiles the kernel for
float32 or float64. Constants are stored as float64 and rounded when read, as torch does.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba import extending, types

from ..noise import MASK

NEXT, ITEMS, AT_ONCE, SCRATCH, SEED, SEED_HIGH, STEP, STREAM, NOISY, CONSTANTS = range(10)
LINES = CONSTANTS + 10
FIRST, SIZE, NUMBER, TENSORS = range(4)
MEAN = 5
"""Behind the five."""
LINE = TENSORS + MEAN + 1

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
"""numba in its strict arithmetic: no multiplication is fused with an addition."""

log = logging.getLogger(__name__)

intrinsic: Any = extending.intrinsic
carray: Any = numba.carray  # type: ignore[attr-defined]  # not in its exports
inlined: Any = numba.njit(forceinline=True, **OPTIONS)


class Kernel:
    """A function of a table's address, compiled to a C function for each dtype when it is first
    needed."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.function, self.compiled = function, dict[str, Any]()

    def address(self, dtype: str) -> int:
        """Compile, or load from numba's cache on disk, and say so when it took time."""
        if dtype not in self.compiled:
            began = time.perf_counter()
            signature = types.void(types.CPointer(getattr(types, dtype)))
            try:
                compiled = numba.cfunc(signature, cache=True, **OPTIONS)(self.function)
            except RuntimeError:  # numba found no directory for its cache
                compiled = numba.cfunc(signature, **OPTIONS)(self.function)
            if not compiled.cache_hits:
                log.info(
                    "compiled %s for %s in %.1f s; the next process finds it in numba's cache",
                    self.function.__name__, dtype, time.perf_counter() - began,
                )  # fmt: skip
            self.compiled[dtype] = compiled
        return int(self.compiled[dtype].address)


def write(
    sizes: tuple[int, int, int], lines: Sequence[Sequence[int]], constants: Sequence[float],
    key: tuple[int, int, int] | None = None,
) -> np.ndarray:  # fmt: skip
    """The table; sizes are items, items at once and scratch, the key is (seed, step, stream) of the
    noise, if any."""
    words = np.zeros(LINES + LINE * len(lines) + 1, np.int64)
    words[ITEMS:SEED] = sizes
    if key is not None:
        seed, step, stream = key
        words[SEED:CONSTANTS] = (seed & MASK, seed >> 32, step & MASK, stream & MASK, 1)
    words[CONSTANTS:LINES].view(np.float64)[: len(constants)] = constants
    for place, line in zip(itertools.count(LINES, LINE), lines):
        words[place : place + len(line)] = line
    words[-1] = sizes[0]
    return words


def at(builder, arguments, kind):
    """Pointer to the word of a table that (data, index, …) name; it holds an LLVM type."""
    data, index = arguments[:2]
    return builder.gep(builder.bitcast(data, kind.as_pointer()), [index])


@intrinsic
def word(typing, data, index):
    """An integer."""

    def generate(context, builder, signature, arguments):
        return builder.load(at(builder, arguments, ir.IntType(64)))

    return types.int64(data, types.int64), generate


@intrinsic
def double(typing, data, index):
    """A constant."""

    def generate(context, builder, signature, arguments):
        return builder.load(at(builder, arguments, ir.DoubleType()))

    return types.float64(data, types.int64), generate


@intrinsic
def real(typing, data, value):
    """A double rounded to the type of the weights."""

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[1], types.float64, data.dtype)

    return data.dtype(data, types.float64), generate


@intrinsic
def take(typing, data, count):
    """Add to the first word and return what it was, as one indivisible operation."""

    def generate(context, builder, signature, arguments):
        place = builder.bitcast(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "monotonic")

    return types.int64(data, types.int64), generate


@intrinsic
def pointer(typing, data, index, dtype):
    """An address that stands in the table, as a pointer to numbers of this type."""
    result = types.CPointer(dtype.dtype)

    def generate(context, builder, signature, arguments):
        address = builder.load(at(builder, arguments, ir.IntType(64)))
        return builder.inttoptr(address, context.get_value_type(result))

    return result(data, types.int64, dtype), generate


@intrinsic
def pointer_to_weights(typing, data, index):
    def generate(context, builder, signature, arguments):
        address = builder.load(at(builder, arguments, ir.IntType(64)))
        return builder.inttoptr(address, context.get_value_type(data))

    return data(data, types.int64), generate


@intrinsic
def prefetch(typing, array, index):
    """Ask for the cache line of an element, which may lie behind the end."""

    def generate(context, builder, signature, arguments):
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(array)(context, builder, value=arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # to read, into all caches, data
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@inlined
def doubles(data):
    """All constants, of which a kernel takes the first few."""
    return (
        double(data, CONSTANTS), double(data, CONSTANTS + 1), double(data, CONSTANTS + 2), double(data, CONSTANTS + 3),
        double(data, CONSTANTS + 4), double(data, CONSTANTS + 5), double(data, CONSTANTS + 6),
        double(data, CONSTANTS + 7), double(data, CONSTANTS + 8), double(data, CONSTANTS + 9),
    )  # fmt: skip


@inlined
def constants(data):
    """The same in the type of the weights."""
    a, b, c, d, e, f, g, h, i, j = doubles(data)
    return (
        real(data, a), real(data, b), real(data, c), real(data, d), real(data, e), real(data, f), real(data, g),
        real(data, h), real(data, i), real(data, j),
    )  # fmt: skip


@inlined
def tensor(data, line, index, size):
    """A tensor of the type of the weights, as a vector."""
    return carray(pointer_to_weights(data, line + TENSORS + index), (size,))


@intrinsic
def wide_vectors(typing, data):
    """Compile the loops of the function that says so with the widest vectors there are.

    For Intel's processors LLVM takes half of a 512-bit register, as wide vectors once made them
    slower; the noise takes 1.5 times as long then (`docs/speed.md`).
    """

    def generate(context, builder, signature, arguments):
        # past llvmlite's list, which lacks it
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(data), generate


@inlined
def walk(data, move, *rest):
    """move(data, line of the parameter, item of that parameter, scratch, *rest), for the items that
    come to this thread.
    """
    items, at_once, line = word(data, ITEMS), word(data, AT_ONCE), LINES
    scratch = np.zeros(word(data, SCRATCH), np.float32)
    while True:
        start = take(data, at_once)
        if start >= items:
            return
        for item in range(start, min(start + at_once, items)):
            while item >= word(data, line + LINE):
                line += LINE
            move(data, line, item - word(data, line), scratch, *rest)
