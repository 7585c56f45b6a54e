"""The compiled loops behind `kernels.py`: noise, state and step of every sampler in one pass over memory.

Kernels walk over blocks of 1024 elements whose noise stays in L1, and give the bits of the plain torch functions. They
are functions of a table (see `table.py`) which do to each of its items what the function above them says.

numba's cache on disk watches this file alone: after a change in noise.py, draws.py or table.py, touch it and
compiled_rows.py too.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import math

import numpy as np

from .draws import fill_block
from .noise import BLOCK
from .table import SIZE, TENSORS, Kernel, carray, constants, inlined, pointer, real, tensor, walk, word


@inlined
def part(data, line, index, block):
    """A block of a tensor."""
    return tensor(data, line, index, word(data, line + SIZE))[block * BLOCK : (block + 1) * BLOCK]


@inlined
def normal_block(data, line, block, xi):
    out = part(data, line, 0, block)
    fill_block(data, line, xi, block, out, out)
    for i in range(out.size):
        out[i] = xi[i]


@Kernel
def normal_blocks(data):
    walk(data, normal_block)


@inlined
def sgld_move(data, t, g, xi):
    lr, pull, scale = constants(data)[:3]
    for i in range(t.size):
        t[i] = t[i] - (g[i] + t[i] * pull) * lr + xi[i] * scale


@inlined
def sgld_block(data, line, block, xi):
    t, g = part(data, line, 0, block), part(data, line, 1, block)
    fill_block(data, line, xi, block, t, g)
    sgld_move(data, t, g, xi)


@Kernel
def sgld_blocks(data):
    walk(data, sgld_block)


@inlined
def gain_of(v, eps_in, eps_out, ceiling, one):
    gain = one / (math.sqrt(v + eps_in) + eps_out)
    return ceiling if gain > ceiling else gain


@inlined
def psgld_move(data, t, g, v, xi):
    lr, pull, heat, decay, share, eps_in, eps_out, ceiling = constants(data)[:8]
    one = real(data, 1.0)
    for i in range(t.size):
        v[i] = v[i] * decay + g[i] * g[i] * share
        gain = gain_of(v[i], eps_in, eps_out, ceiling, one)
        t[i] = t[i] - (g[i] + t[i] * pull) * gain * lr + xi[i] * math.sqrt(gain * heat)


@inlined
def psgld_block(data, line, block, xi):
    t, g, v = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    fill_block(data, line, xi, block, t, g)
    psgld_move(data, t, g, v, xi)


@Kernel
def psgld_blocks(data):
    walk(data, psgld_block)


@inlined
def sghmc_move(data, t, g, m, xi, keep):
    lr, pull, scale = constants(data)[:3]
    for i in range(t.size):
        m[i] = m[i] * keep - (g[i] + t[i] * pull) * lr + xi[i] * scale
        t[i] = t[i] + m[i]


@inlined
def sghmc_block(data, line, block, xi):
    t, g, m = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    fill_block(data, line, xi, block, t, g)
    sghmc_move(data, t, g, m, xi, constants(data)[3])


@Kernel
def sghmc_blocks(data):
    walk(data, sghmc_block)


@inlined
def sum_of_squares(m, pile):
    """Of a block, in the order of `sgnht.mean_square`: halves onto each other, whatever the threads."""
    half = pile.size
    if m.size == 2 * half:
        for i in range(half):
            pile[i] = np.float64(m[i] * m[i]) + np.float64(m[half + i] * m[half + i])
    else:
        pile[:] = 0
        for i in range(m.size):
            pile[i % half] += np.float64(m[i] * m[i])
    while half > 1:
        half //= 2
        for i in range(half):
            pile[i] += pile[half + i]
    return pile[0]


@inlined
def sgnht_block(data, line, block, xi):
    """SGHMC at the friction that the fourth tensor holds; the fifth, if any, gets the sum of m² of each block."""
    t, g, m = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    fill_block(data, line, xi, block, t, g)
    sghmc_move(data, t, g, m, xi, real(data, 1.0 - np.float64(tensor(data, line, 3, 1)[0])))
    if word(data, line + TENSORS + 4):
        squares = carray(pointer(data, line + TENSORS + 4, np.float64), (block + 1,))
        squares[block] = sum_of_squares(m, xi.view(np.float64))  # the noise is used up


@Kernel
def sgnht_blocks(data):
    walk(data, sgnht_block)


@inlined
def santa_block(data, line, block, xi):
    lr, pull, heat, decay, share, eps_in, eps_out, ceiling, target, rate = constants(data)
    zero, half, one = real(data, 0.0), real(data, 0.5), real(data, 1.0)
    t, g, v = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    m, alpha = part(data, line, 3, block), part(data, line, 4, block)
    fill_block(data, line, xi, block, t, g)
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


@Kernel
def santa_blocks(data):
    walk(data, santa_block)
