"""`samplers/noise.py` compiled: normals for the kernels, a cache-sized piece at a time, with the
bits of the plain functions.

What makes LLVM vectorise, measured with AVX-512: Philox on 64-bit lanes that keep only their low
halves (32-bit lanes are 2.4 times slower), helpers that must be inlined (a call within the loop is
scalar: 4 times slower), selects instead of branches, float32 constants. Nothing may fuse a
multiplication with an addition: that would change bits.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import math

import numpy as np

from .. import noise
from ..noise import MASK, ROUNDS, RUN
from .table import (
    NOISY,
    NUMBER,
    SEED,
    SEED_HIGH,
    STEP,
    STREAM,
    inlined,
    prefetch,
    wide_vectors,
    word,
)

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
AT_ONCE, PER_LINE = 16, 16
"""Counters between two requests to memory: a vector of 64-byte registers. Float32 numbers in a line
of the cache."""


@inlined
def twist(a, b, c, d, k0, k1):
    # only here do the upper halves matter, so only here are they cleared
    p0, p1 = (a & LOW) * M0, (c & LOW) * M1
    return (p1 >> HALF_WORD) ^ b ^ u64(k0), p1, (p0 >> HALF_WORD) ^ d ^ u64(k1), p0


@inlined
def philox_words(counter, parameter, step, stream, k0, k1):
    """`noise.philox`, one counter; ten rounds written out, as LLVM vectorises no loop within a
    loop."""
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


@inlined
def normal_pair(x, y):
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


@inlined
def draw(data, line, xi, first, run, start, stop):
    """The normals of the counters first+start … first+stop−1, into the four runs of xi."""
    wide_vectors(data)
    k0, k1, parameter = u32(word(data, SEED)), u32(word(data, SEED_HIGH)), u32(word(data, line + NUMBER))
    step, stream = u32(word(data, STEP)), u32(word(data, STREAM))
    for j in range(start, stop):
        x0, x1, x2, x3 = philox_words(first + j, parameter, step, stream, k0, k1)
        xi[j], xi[run + j] = normal_pair(x0, x1)
        xi[2 * run + j], xi[3 * run + j] = normal_pair(x2, x3)


@inlined
def fill_row(data, line, xi, row, run):
    """Noise of an embedding row; zeros stay where none is wanted."""
    if word(data, NOISY):
        draw(data, line, xi, row * run, run, 0, run)


@inlined
def fill_block(data, line, xi, block, t, g):
    """Noise of a block, while its weights and gradients are on their way from memory: updates then
    take 0.7 to 0.95 of the time. (Asking for the states too gains nothing more.)"""
    if word(data, NOISY):
        for start in range(0, RUN, AT_ONCE):
            for i in range(4 * start, 4 * (start + AT_ONCE), PER_LINE):
                prefetch(t, i)
                prefetch(g, i)
            draw(data, line, xi, block * RUN, RUN, start, start + AT_ONCE)
