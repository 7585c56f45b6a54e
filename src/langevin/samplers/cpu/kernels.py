"""The compiled loops behind `launch.py`: noise, state and step of every sampler in one pass over
memory.

Kernels walk over blocks of 1024 elements whose noise stays in L1, and give the bits of the plain
torch functions. They are functions of a table (see `table.py`) which do to each of its items what
the function above them says. Priors with a mean have kernels of their own, with the same text:
which of the two is meant, `None` or `True`, is known when they are compiled. (One kernel that
looked for a mean at run time cost SGHMC 1.1 times as much.)

numba's cache on disk watches this file alone: after a change in noise.py (either) or table.py,
touch it and rows.py too.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import math

import numpy as np

from ..noise import BLOCK
from .noise import fill_block
from .table import (
    MEAN,
    SIZE,
    TENSORS,
    Kernel,
    carray,
    constants,
    inlined,
    pointer,
    real,
    tensor,
    walk,
    word,
)  # fmt: skip


@inlined
def part(data, line, index, block):
    """A block of a tensor."""
    return tensor(data, line, index, word(data, line + SIZE))[block * BLOCK : (block + 1) * BLOCK]


@inlined
def mean_of(data, line, block, centred):
    """What the weights of a block are drawn to; None is zero."""
    if centred is None:
        return None
    return part(data, line, MEAN, block)


@inlined
def away(t, mean, i):
    """From the mean of the prior."""
    if mean is None:
        return t[i]
    return t[i] - mean[i]


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
def sgld_move(data, t, g, xi, mean):
    lr, pull, scale = constants(data)[:3]
    for i in range(t.size):
        t[i] = t[i] - (g[i] + away(t, mean, i) * pull) * lr + xi[i] * scale


@inlined
def sgld_block(data, line, block, xi, centred):
    t, g = part(data, line, 0, block), part(data, line, 1, block)
    fill_block(data, line, xi, block, t, g)
    sgld_move(data, t, g, xi, mean_of(data, line, block, centred))


@Kernel
def sgld_blocks(data):
    walk(data, sgld_block, None)


@Kernel
def sgld_mean_blocks(data):
    walk(data, sgld_block, True)


@inlined
def gain_of(v, eps_in, eps_out, ceiling, one):
    gain = one / (math.sqrt(v + eps_in) + eps_out)
    return ceiling if gain > ceiling else gain


@inlined
def psgld_move(data, t, g, v, xi, mean):
    lr, pull, heat, decay, share, eps_in, eps_out, ceiling = constants(data)[:8]
    one = real(data, 1.0)
    for i in range(t.size):
        v[i] = v[i] * decay + g[i] * g[i] * share
        gain = gain_of(v[i], eps_in, eps_out, ceiling, one)
        t[i] = t[i] - (g[i] + away(t, mean, i) * pull) * gain * lr + xi[i] * math.sqrt(gain * heat)


@inlined
def psgld_block(data, line, block, xi, centred):
    t, g, v = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    fill_block(data, line, xi, block, t, g)
    psgld_move(data, t, g, v, xi, mean_of(data, line, block, centred))


@Kernel
def psgld_blocks(data):
    walk(data, psgld_block, None)


@Kernel
def psgld_mean_blocks(data):
    walk(data, psgld_block, True)


@inlined
def sghmc_move(data, t, g, m, xi, keep, mean):
    lr, pull, scale = constants(data)[:3]
    for i in range(t.size):
        m[i] = m[i] * keep - (g[i] + away(t, mean, i) * pull) * lr + xi[i] * scale
        t[i] = t[i] + m[i]


@inlined
def sghmc_block(data, line, block, xi, centred):
    t, g, m = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    fill_block(data, line, xi, block, t, g)
    keep = constants(data)[3]
    sghmc_move(data, t, g, m, xi, keep, mean_of(data, line, block, centred))


@Kernel
def sghmc_blocks(data):
    walk(data, sghmc_block, None)


@Kernel
def sghmc_mean_blocks(data):
    walk(data, sghmc_block, True)


@inlined
def sum_of_squares(m, pile):
    """Of a block, in the order of `sgnht.mean_square`: halves onto each other, whatever the
    threads."""
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
def sgnht_block(data, line, block, xi, centred):
    """SGHMC at the friction that the fourth tensor holds; the fifth, if any, gets the sum of m² of
    each block."""
    t, g, m = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    fill_block(data, line, xi, block, t, g)
    keep = real(data, 1.0 - np.float64(tensor(data, line, 3, 1)[0]))
    sghmc_move(data, t, g, m, xi, keep, mean_of(data, line, block, centred))
    if word(data, line + TENSORS + 4):
        squares = carray(pointer(data, line + TENSORS + 4, np.float64), (block + 1,))
        squares[block] = sum_of_squares(m, xi.view(np.float64))  # the noise is used up


@Kernel
def sgnht_blocks(data):
    walk(data, sgnht_block, None)


@Kernel
def sgnht_mean_blocks(data):
    walk(data, sgnht_block, True)


@inlined
def santa_move(data, t, g, v, m, alpha, xi, mean):
    lr, pull, heat, decay, share, eps_in, eps_out, ceiling, target, rate = constants(data)
    zero, half, one = real(data, 0.0), real(data, 0.5), real(data, 1.0)
    for i in range(t.size):
        v[i] = v[i] * decay + g[i] * g[i] * share
        gain = gain_of(v[i], eps_in, eps_out, ceiling, one)
        push = (g[i] + away(t, mean, i) * pull) * gain * lr
        m[i] = m[i] * (one - alpha[i]) - push + xi[i] * math.sqrt(gain * heat)
        t[i] = t[i] + m[i]
        warmth = m[i] * m[i] / gain
        moved = alpha[i] + ((one - alpha[i] * half) * warmth / target - one) * rate
        moved = zero if moved < zero else moved
        moved = one if moved > one else moved
        alpha[i] = moved if rate > zero else alpha[i]


@inlined
def santa_block(data, line, block, xi, centred):
    t, g, v = part(data, line, 0, block), part(data, line, 1, block), part(data, line, 2, block)
    m, alpha = part(data, line, 3, block), part(data, line, 4, block)
    fill_block(data, line, xi, block, t, g)
    santa_move(data, t, g, v, m, alpha, xi, mean_of(data, line, block, centred))


@Kernel
def santa_blocks(data):
    walk(data, santa_block, None)


@Kernel
def santa_mean_blocks(data):
    walk(data, santa_block, True)
