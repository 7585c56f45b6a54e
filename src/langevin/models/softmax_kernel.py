"""The compiled loop behind `softmax.py`: logits of one item → its loss and the gradient of that,
while in the cache.

A kernel is a function of a table (see `samplers/cpu/table.py`) whose items are rows of logits. Rows
are float32, or bfloat16 as the 16-bit words that it consists of: the upper half of a float32.
Arithmetic is float32 for both.

numba's cache on disk watches this file alone: after a change in table.py, touch it too.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from ..samplers.cpu.table import (
    CONSTANTS,
    OPTIONS,
    SIZE,
    TENSORS,
    Kernel,
    carray,
    double,
    pointer,
    tensor,
    walk,
    wide_vectors,
    word,
)

f32, i32, u16, u32 = np.float32, np.int32, np.uint16, np.uint32
REORDERED = {"reassoc", "contract", "nsz"}
"""Sums may be taken in any order, so that they vectorise; but numbers that are none must be seen,
so no `fast`."""
inlined: Any = numba.njit(forceinline=True, fastmath=REORDERED, **OPTIONS)

LOG2_E, LEAST, HALF, BIAS, MANTISSA = f32(math.log2(math.e)), f32(-126), f32(0.5), i32(127), i32(23)
E0, E1, E2, E3, E4, E5, E6 = (f32(math.log(2) ** n / math.factorial(n)) for n in range(7))
"""Taylor's series of 2^f on [−½, ½], within 1.2e-7."""
HIGH, ROUND, LAST = u32(16), u32(0x7FFF), u32(1)
SIGN, ALL_BUT_SIGN = i32(31), i32(0x7FFFFFFF)


@inlined
def exponential(x):
    """eˣ for x ≤ 0, at least 2⁻¹²⁶; what is no number stays none."""
    t = x * LOG2_E
    t = LEAST if t < LEAST else t
    n = i32(t - HALF)
    f = t - f32(n)
    p = (((((f * E6 + E5) * f + E4) * f + E3) * f + E2) * f + E1) * f + E0
    return p * i32((n + BIAS) << MANTISSA).view(np.float32)


@inlined
def in_order(bits):
    """The bits of a float32 as an integer that is greater when the number is, and back."""
    return i32(bits ^ i32(i32(bits >> SIGN) & ALL_BUT_SIGN))


@inlined
def greatest(bits, width):
    """Of the numbers with these bits. Integers, because LLVM vectorises no greatest of numbers that
    may be NaN."""
    top = in_order(i32(bits[0]))
    for j in range(width):
        key = in_order(i32(bits[j]))
        top = key if key > top else top
    return i32(in_order(top)).view(np.float32)


@inlined
def target_of(data, line, row):
    return carray(pointer(data, line + TENSORS + 2, np.int64), (row + 1,))[row]


@inlined
def note_loss(data, line, row, value):
    carray(pointer(data, line + TENSORS + 3, np.float32), (row + 1,))[row] = value


@inlined
def float_row(data, line, row, scratch):
    wide_vectors(data)
    width, target, scale = word(data, line + SIZE), target_of(data, line, row), f32(double(data, CONSTANTS))
    logits = tensor(data, line, 0, (row + 1) * width)[row * width :]
    grad = tensor(data, line, 1, (row + 1) * width)[row * width :]
    top, total = greatest(logits.view(np.int32), width), f32(0)
    for j in range(width):
        grad[j] = exponential(logits[j] - top)
        total += grad[j]
    note_loss(data, line, row, top - logits[target] + f32(math.log(total)))
    share = scale / total
    for j in range(width):
        grad[j] = grad[j] * share
    grad[target] = grad[target] - scale


@inlined
def widened(word):
    """A bfloat16 as float32."""
    return u32(u32(word) << HIGH).view(np.float32)


@inlined
def narrowed(number):
    """A float32 rounded to bfloat16, halves to even."""
    bits = f32(number).view(np.uint32)
    return u16(u32(bits + ROUND + u32(u32(bits >> HIGH) & LAST)) >> HIGH)


@inlined
def bfloat16_row(data, line, row, scratch):
    wide_vectors(data)
    width, target, scale = word(data, line + SIZE), target_of(data, line, row), f32(double(data, CONSTANTS))
    logits = tensor(data, line, 0, (row + 1) * width)[row * width :]
    grad = tensor(data, line, 1, (row + 1) * width)[row * width :]
    numbers = scratch[:width]
    for j in range(width):
        numbers[j] = widened(logits[j])
    top, total = greatest(numbers.view(np.int32), width), f32(0)
    for j in range(width):
        numbers[j] = exponential(widened(logits[j]) - top)
        total += numbers[j]
    note_loss(data, line, row, top - widened(logits[target]) + f32(math.log(total)))
    share = scale / total
    numbers[target] = numbers[target] - total
    for j in range(width):
        grad[j] = narrowed(numbers[j] * share)


@Kernel
def float_rows(data):
    walk(data, float_row)


@Kernel
def bfloat16_rows(data):
    walk(data, bfloat16_row)
