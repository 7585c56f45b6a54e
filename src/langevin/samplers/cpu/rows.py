"""Compiled loops over embedding rows: the steps of `kernels.py` on some rows of a matrix, and the
moves of `clocks.py` for rows that come late. An item is an entry of the second tensor; the size of
a line is the width of the matrix.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import math

import numpy as np

from .kernels import gain_of, psgld_move, sgld_move
from .noise import fill_row
from .table import (
    SIZE,
    TENSORS,
    Kernel,
    carray,
    doubles,
    inlined,
    pointer,
    real,
    tensor,
    walk,
    word,
)

# In float64. log 2 comes in two parts, the first so short that n times it is exact.
INVERSE_LOG_2, LOG_2_HIGH = 1 / math.log(2), round(math.log(2) * 2**32) / 2**32
LOG_2_LOW = math.log(2) - LOG_2_HIGH
R3, R4, R5, R6, R7, R8, R9 = (1 / n for n in range(3, 10))
E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = (1 / math.factorial(n) for n in range(3, 14))
MAGIC, EXPONENT_BIAS, MANTISSA_BITS = 1.5 * 2.0**52, np.int64(1023), np.int64(52)


@inlined
def row_of(data, line, index, row):
    """Of a matrix as wide as the weights."""
    width = word(data, line + SIZE)
    return tensor(data, line, index, (row + 1) * width)[row * width :]


@inlined
def start_row(data, line, item, xi):
    """The number of a row, after its noise was drawn."""
    row = carray(pointer(data, line + TENSORS + 1, np.int64), (item + 1,))[item]
    run = (word(data, line + SIZE) + 3) // 4
    fill_row(data, line, xi, row, run)
    return row


@inlined
def sgld_row(data, line, item, xi):
    row = start_row(data, line, item, xi)
    sgld_move(data, row_of(data, line, 0, row), row_of(data, line, 2, item), xi, None)


@Kernel
def sgld_rows(data):
    walk(data, sgld_row)


@inlined
def psgld_row(data, line, item, xi):
    row = start_row(data, line, item, xi)
    psgld_move(data, row_of(data, line, 0, row), row_of(data, line, 2, item), row_of(data, line, 3, row), xi, None)


@Kernel
def psgld_rows(data):
    walk(data, psgld_row)


@inlined
def shared_row(data, line, item, xi):
    t = row_of(data, line, 0, start_row(data, line, item, xi))
    a, s = tensor(data, line, 2, item + 1)[item], tensor(data, line, 3, item + 1)[item]
    for i in range(t.size):
        t[i] = t[i] * a + xi[i] * s


@Kernel
def shared_rows(data):
    walk(data, shared_row)


@inlined
def log_one_minus(y):
    """log(1−y) for 0 ≤ y ≤ 1/32 by its series, to 10⁻¹⁴."""
    p = (((((y * R9 + R8) * y + R7) * y + R6) * y + R5) * y + R4) * y + R3
    return -((p * y + 0.5) * y + 1.0) * y


@inlined
def exp_minus_one(x):
    """expm1 for x ≤ 0 to 10⁻¹⁵: 2ⁿ·(expm1(r) + 1) − 1 with x = n·log 2 + r, n read from the bits of
    a large sum."""
    x = -700.0 if x < -700.0 else x
    shifted = x * INVERSE_LOG_2 + MAGIC
    n = shifted - MAGIC
    r = x - n * LOG_2_HIGH - n * LOG_2_LOW
    p = (((((r * E13 + E12) * r + E11) * r + E10) * r + E9) * r + E8) * r + E7
    p = ((((((p * r + E6) * r + E5) * r + E4) * r + E3) * r + 0.5) * r + 1.0) * r
    power = np.int64((np.float64(shifted).view(np.int64) + EXPONENT_BIAS) << MANTISSA_BITS).view(np.float64)
    return power * p + (power - 1.0)


@inlined
def deviation(shrink, y, k, gain, heat):
    return math.sqrt(-shrink * (2.0 + shrink) / (k * y * (2.0 - y)) * heat * gain)


@inlined
def frozen_row(data, line, item, xi):
    """`clocks.frozen_move` in float64, weight by weight; by libm, much slower, where a pull may
    exceed 1/32."""
    pull, num_data, tiny, eps_in, eps_out, ceiling = doubles(data)[:6]
    row = start_row(data, line, item, xi)
    t, v = row_of(data, line, 0, row), row_of(data, line, 2, row)
    sums = carray(pointer(data, line + TENSORS + 3, np.float64), (item + 1, 3))[item]
    k = sums[0] * sums[0] / max(sums[1], tiny) + tiny
    rate, heat = sums[1] / max(sums[0], tiny), 2 * sums[2] / num_data
    if gain_of(0.0, eps_in, eps_out, ceiling, 1.0) * pull * rate <= 1 / 32:
        for i in range(t.size):
            gain = gain_of(np.float64(v[i]), eps_in, eps_out, ceiling, 1.0)
            y = gain * (pull * rate) + tiny
            shrink = exp_minus_one(k * log_one_minus(y))
            t[i] = t[i] * real(data, 1.0 + shrink) + xi[i] * real(data, deviation(shrink, y, k, gain, heat))
    else:
        for i in range(t.size):
            gain = gain_of(np.float64(v[i]), eps_in, eps_out, ceiling, 1.0)
            y = min(gain * (pull * rate) + tiny, 1 - 1e-16)
            shrink = math.expm1(k * math.log1p(-y))
            t[i] = t[i] * real(data, 1.0 + shrink) + xi[i] * real(data, deviation(shrink, y, k, gain, heat))


@Kernel
def frozen_rows(data):
    walk(data, frozen_row)
