"""The compiled loops behind `kernels.py`: noise, state and step of every sampler in one pass over memory.

Kernels walk over blocks of 1024 elements whose noise stays in L1, and give the bits of the plain torch functions.
What makes LLVM vectorise, measured with AVX-512: Philox on 64-bit lanes that keep only their low halves (32-bit lanes
are 2.4 times slower), helpers that must be inlined (a call within the loop is scalar: 4 times slower), selects
instead of branches, float32 constants. Nothing may fuse a multiplication with an addition: that would change bits.

numba's cache on disk watches this file alone: after changing a constant in noise.py, touch this one too.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from . import noise
from .noise import BLOCK, MASK, ROUNDS, RUN


def compiled(inline: bool) -> Callable[[Any], Any]:
    """numba in its strict arithmetic, GIL released; cached on disk unless there is no place to write."""

    def decorate(function: Any) -> Any:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": inline}
        try:
            return numba.njit(cache=not inline, **options)(function)
        except RuntimeError:  # numba found no directory for its cache
            return numba.njit(**options)(function)

    return decorate


f32, i32, u32, u64 = np.float32, np.int32, np.uint32, np.uint64
M0, M1 = (u64(m) for m in noise.MULTIPLIERS)
LOW, HALF_WORD = u64(MASK), u64(32)
K0, K1 = (tuple(u32(i * step & MASK) for i in range(ROUNDS)) for step in noise.KEY_STEPS)
L0, L1, L2, L3, L4, L5, L6, L7, L8 = (f32(c) for c in noise.LOG_POLY)
S0, S1, S2, S3 = (f32(c) for c in noise.SIN_POLY)
C0, C1, C2, C3, C4 = (f32(c) for c in noise.COS_POLY)
ONE, HALF, MINUS_TWO, LOG_2, UNIT = f32(1), f32(0.5), f32(-2), f32(noise.LN2), f32(1 / 2**31)
SQRT_HALF, MANTISSA, EXPONENT_AT = i32(noise.SQRT_HALF_BITS), i32(0x7FFFFF), i32(23)
BIT, TWO_BITS = u32(1), u32(2)
# The rest is float64. log 2 comes in two parts, the first so short that n times it is exact.
INVERSE_LOG_2, LOG_2_HIGH = 1 / math.log(2), round(math.log(2) * 2**32) / 2**32
LOG_2_LOW = math.log(2) - LOG_2_HIGH
R3, R4, R5, R6, R7, R8, R9 = (1 / n for n in range(3, 10))
E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = (1 / math.factorial(n) for n in range(3, 14))
MAGIC, EXPONENT_BIAS, MANTISSA_BITS = 1.5 * 2.0**52, np.int64(1023), np.int64(52)


@compiled(inline=True)
def twist(a, b, c, d, k0, k1):
    p0, p1 = (a & LOW) * M0, (c & LOW) * M1  # only here do the upper halves matter, so only here are they cleared
    return (p1 >> HALF_WORD) ^ b ^ u64(k0), p1, (p0 >> HALF_WORD) ^ d ^ u64(k1), p0


@compiled(inline=True)
def philox(counter, parameter, step, stream, k0, k1):
    """`noise.philox`, one counter; ten rounds written out, as LLVM vectorises no loop within a loop."""
    a, b, c, d = u64(counter), u64(parameter), u64(step), u64(stream)
    a, b, c, d = twist(a, b, c, d, k0, k1)
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[1]), u32(k1 + K1[1]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[2]), u32(k1 + K1[2]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[3]), u32(k1 + K1[3]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[4]), u32(k1 + K1[4]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[5]), u32(k1 + K1[5]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[6]), u32(k1 + K1[6]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[7]), u32(k1 + K1[7]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[8]), u32(k1 + K1[8]))
    a, b, c, d = twist(a, b, c, d, u32(k0 + K0[9]), u32(k1 + K1[9]))
    return u32(a), u32(b), u32(c), u32(d)


@compiled(inline=True)
def box_muller(x, y):
    """`noise.box_muller` and `noise.log_`, one pair."""
    u = (f32(i32(x >> BIT)) + HALF) * UNIT
    shifted = i32(f32(u).view(np.int32) - SQRT_HALF)
    f = i32(i32(shifted & MANTISSA) + SQRT_HALF).view(np.float32) - ONE
    p = ((((((((f * L0 + L1) * f + L2) * f + L3) * f + L4) * f + L5) * f + L6) * f + L7) * f + L8) * f
    radius = math.sqrt((f32(i32(shifted >> EXPONENT_AT)) * LOG_2 + p) * MINUS_TWO)
    q = f32(i32(u32(y << TWO_BITS))) * UNIT
    z = q * q
    sin, cos = (((z * S0 + S1) * z + S2) * z + S3) * q, (((z * C0 + C1) * z + C2) * z + C3) * z + C4
    swap, flip = i32(y) < 0, i32(u32(y << BIT)) < 0
    radius = -radius if flip else radius
    return radius * (sin if swap else cos), radius * (cos if swap else sin)


@compiled(inline=True)
def fill(xi, first, run, words):
    """Four runs of normals from the counters first … first+run−1; zeros stay where no noise is wanted."""
    k0, k1, parameter, step, stream, wanted = words[0], words[1], words[2], words[3], words[4], words[5]
    if wanted:
        for j in range(run):
            x0, x1, x2, x3 = philox(first + j, parameter, step, stream, k0, k1)
            xi[j], xi[run + j] = box_muller(x0, x1)
            xi[2 * run + j], xi[3 * run + j] = box_muller(x2, x3)


@compiled(inline=False)
def normal_blocks(out, constants, words, start, stop):
    xi = np.zeros(BLOCK, np.float32)
    for block in range(start, stop):
        fill(xi, block * RUN, RUN, words)
        target = out[block * BLOCK : (block + 1) * BLOCK]
        for i in range(target.size):
            target[i] = xi[i]


@compiled(inline=False)
def sgld_blocks(theta, grad, constants, words, start, stop):
    lr, pull, scale = constants
    xi = np.zeros(BLOCK, np.float32)
    for block in range(start, stop):
        fill(xi, block * RUN, RUN, words)
        here = slice(block * BLOCK, (block + 1) * BLOCK)
        t, g = theta[here], grad[here]
        for i in range(t.size):
            t[i] = t[i] - (g[i] + t[i] * pull) * lr + xi[i] * scale


@compiled(inline=True)
def gain_of(v, eps_in, eps_out, ceiling, one):
    gain = one / (math.sqrt(v + eps_in) + eps_out)
    return ceiling if gain > ceiling else gain


@compiled(inline=False)
def psgld_blocks(theta, grad, second_moment, constants, words, start, stop):
    lr, pull, heat, decay, share, eps_in, eps_out, ceiling, one = constants
    xi = np.zeros(BLOCK, np.float32)
    for block in range(start, stop):
        fill(xi, block * RUN, RUN, words)
        here = slice(block * BLOCK, (block + 1) * BLOCK)
        t, g, v = theta[here], grad[here], second_moment[here]
        for i in range(t.size):
            v[i] = v[i] * decay + g[i] * g[i] * share
            gain = gain_of(v[i], eps_in, eps_out, ceiling, one)
            t[i] = t[i] - (g[i] + t[i] * pull) * gain * lr + xi[i] * math.sqrt(gain * heat)


@compiled(inline=False)
def sghmc_blocks(theta, grad, momentum, squares, constants, words, start, stop):
    """`squares`, unless empty, gets the sum of m² of each block: added in one order whatever the threads."""
    lr, pull, scale, keep = constants
    xi, pile = np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.float64)
    for block in range(start, stop):
        fill(xi, block * RUN, RUN, words)
        here = slice(block * BLOCK, (block + 1) * BLOCK)
        t, g, m = theta[here], grad[here], momentum[here]
        for i in range(t.size):
            m[i] = m[i] * keep - (g[i] + t[i] * pull) * lr + xi[i] * scale
            t[i] = t[i] + m[i]
        if squares.size:
            pile[:] = 0
            for i in range(m.size):
                pile[i] = m[i] * m[i]
            half = BLOCK // 2
            while half:
                for i in range(half):
                    pile[i] += pile[half + i]
                half //= 2
            squares[block] = pile[0]


@compiled(inline=False)
def santa_blocks(theta, grad, second_moment, momentum, friction, constants, words, start, stop):
    lr, pull, heat, decay, share, eps_in, eps_out, ceiling, one, zero, half, target, rate = constants
    xi = np.zeros(BLOCK, np.float32)
    for block in range(start, stop):
        fill(xi, block * RUN, RUN, words)
        here = slice(block * BLOCK, (block + 1) * BLOCK)
        t, g, v, m, alpha = theta[here], grad[here], second_moment[here], momentum[here], friction[here]
        for i in range(t.size):
            v[i] = v[i] * decay + g[i] * g[i] * share
            gain = gain_of(v[i], eps_in, eps_out, ceiling, one)
            push = (g[i] + t[i] * pull) * gain * lr
            m[i] = m[i] * (one - alpha[i]) - push + xi[i] * math.sqrt(gain * heat)
            t[i] = t[i] + m[i]
            warmth = m[i] * m[i] / gain
            moved = alpha[i] + ((one - alpha[i] * half) * warmth / target - one) * rate
            moved = zero if moved < zero else moved
            moved = one if moved > one else moved
            alpha[i] = moved if rate > zero else alpha[i]


# Embedding rows: the same steps on some rows of a matrix, and the moves of `clocks.py` for rows that come late.


@compiled(inline=False)
def sgld_rows(theta, rows, values, constants, words, start, stop):
    lr, pull, scale = constants
    run = (theta.shape[1] + 3) // 4
    xi = np.zeros(4 * run, np.float32)
    for r in range(start, stop):
        fill(xi, rows[r] * run, run, words)
        t, g = theta[rows[r]], values[r]
        for i in range(t.size):
            t[i] = t[i] - (g[i] + t[i] * pull) * lr + xi[i] * scale


@compiled(inline=False)
def psgld_rows(theta, rows, values, second_moment, constants, words, start, stop):
    lr, pull, heat, decay, share, eps_in, eps_out, ceiling, one = constants
    run = (theta.shape[1] + 3) // 4
    xi = np.zeros(4 * run, np.float32)
    for r in range(start, stop):
        fill(xi, rows[r] * run, run, words)
        t, g, v = theta[rows[r]], values[r], second_moment[rows[r]]
        for i in range(t.size):
            v[i] = v[i] * decay + g[i] * g[i] * share
            gain = gain_of(v[i], eps_in, eps_out, ceiling, one)
            t[i] = t[i] - (g[i] + t[i] * pull) * gain * lr + xi[i] * math.sqrt(gain * heat)


@compiled(inline=False)
def shared_rows(theta, rows, decay, deviation, words, start, stop):
    run = (theta.shape[1] + 3) // 4
    xi = np.zeros(4 * run, np.float32)
    for r in range(start, stop):
        fill(xi, rows[r] * run, run, words)
        t, a, s = theta[rows[r]], decay[r], deviation[r]
        for i in range(t.size):
            t[i] = t[i] * a + xi[i] * s


@compiled(inline=True)
def log_one_minus(y):
    """log(1−y) for 0 ≤ y ≤ 1/32 by its series, to 10⁻¹⁴."""
    p = (((((y * R9 + R8) * y + R7) * y + R6) * y + R5) * y + R4) * y + R3
    return -((p * y + 0.5) * y + 1.0) * y


@compiled(inline=True)
def exp_minus_one(x):
    """expm1 for x ≤ 0 to 10⁻¹⁵: 2ⁿ·(expm1(r) + 1) − 1 with x = n·log 2 + r, n read from the bits of a large sum."""
    x = -700.0 if x < -700.0 else x
    shifted = x * INVERSE_LOG_2 + MAGIC
    n = shifted - MAGIC
    r = x - n * LOG_2_HIGH - n * LOG_2_LOW
    p = (((((r * E13 + E12) * r + E11) * r + E10) * r + E9) * r + E8) * r + E7
    p = ((((((p * r + E6) * r + E5) * r + E4) * r + E3) * r + 0.5) * r + 1.0) * r
    power = np.int64((np.float64(shifted).view(np.int64) + EXPONENT_BIAS) << MANTISSA_BITS).view(np.float64)
    return power * p + (power - 1.0)


@compiled(inline=True)
def deviation(shrink, y, k, gain, heat):
    return math.sqrt(-shrink * (2.0 + shrink) / (k * y * (2.0 - y)) * heat * gain)


@compiled(inline=False)
def frozen_rows(theta, rows, second_moment, sums, constants, words, start, stop):
    """`clocks.frozen_move` in float64, weight by weight; by libm, much slower, where a pull may exceed 1/32."""
    pull, num_data, tiny, eps_in, eps_out, ceiling = constants
    run, real = (theta.shape[1] + 3) // 4, theta.dtype.type
    xi = np.zeros(4 * run, np.float32)
    for r in range(start, stop):
        fill(xi, rows[r] * run, run, words)
        t, v = theta[rows[r]], second_moment[rows[r]]
        k = sums[r, 0] * sums[r, 0] / max(sums[r, 1], tiny) + tiny
        rate, heat = sums[r, 1] / max(sums[r, 0], tiny), 2 * sums[r, 2] / num_data
        if gain_of(0.0, eps_in, eps_out, ceiling, 1.0) * pull * rate <= 1 / 32:
            for i in range(t.size):
                gain = gain_of(np.float64(v[i]), eps_in, eps_out, ceiling, 1.0)
                y = gain * (pull * rate) + tiny
                shrink = exp_minus_one(k * log_one_minus(y))
                t[i] = t[i] * real(1.0 + shrink) + xi[i] * real(deviation(shrink, y, k, gain, heat))
        else:
            for i in range(t.size):
                gain = gain_of(np.float64(v[i]), eps_in, eps_out, ceiling, 1.0)
                y = min(gain * (pull * rate) + tiny, 1 - 1e-16)
                shrink = math.expm1(k * math.log1p(-y))
                t[i] = t[i] * real(1.0 + shrink) + xi[i] * real(deviation(shrink, y, k, gain, heat))
