"""Standard normal noise as a pure function of (seed, stream, parameter, element, step).

A counter-based generator (Philox-4x32-10, Salmon et al. 2011) replaces the usual stream of random
numbers, so resuming, the number of threads and the order of parameters cannot change a draw. Four
32-bit words become four normals by Box and Muller's transform, with polynomials for log, sin and
cos. Everything here is exactly rounded float32 arithmetic in a fixed order (no fused multiply-add,
no libm), so the compiled kernels in `cpu/` reproduce it to the bit.

Layout: elements come in blocks of 1024; counter j of a block yields the elements j, j+256, j+512
and j+768 of it. The 31-bit uniform under the logarithm bounds |ξ| by 6.66, which a true normal
exceeds once in 3.6·10¹⁰ draws.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LANES, RUN = 4, 256
BLOCK = LANES * RUN
MASK = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

STEP_STREAM, START_STREAM, ROW_STREAM = 0, 1, 2
"""What the noise is for: an update, the first momentum, the late update of an embedding row."""

Counter = tuple[int, int, int, int]
"""(seed, parameter, step, stream): everything but the element."""

# Minimax-like fits (Chebyshev nodes, float64, then rounded): log(1+f) = f·L(f) on [√½−1, √2−1],
# sin(πt/4) = t·S(t²) and cos(πt/4) = C(t²) on [−1, 1]; each within 1.2e-7 relative.
LOG_POLY = (
    0.08722349256277084, -0.14366839826107025, 0.14952267706394196, -0.16562393307685852, 0.19956833124160767,
    -0.25002074241638184, 0.3333418667316437, -0.49999988079071045, 1.0,
)  # fmt: skip
SIN_POLY = (-3.59504520019982e-05, 0.00249000103212893, -0.08074543625116348, 0.7853981852531433)
COS_POLY = (3.52876168108196e-06, -0.0003259365039411932, 0.015854323282837868, -0.3084251284599304, 1.0)
LN2 = 0.6931471824645996
SQRT_HALF_BITS = 0x3F3504F3


def normal(
    shape: torch.Size | tuple[int, ...], *, seed: int, parameter: int, step: int, stream: int = STEP_STREAM,
    device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Standard normals of this shape for one parameter at one step. Double precision gets the same
    float32 draws."""
    n = math.prod(shape)
    blocks = -(-n // BLOCK)
    counters = torch.arange(blocks * RUN, dtype=torch.int64, device=device)
    if blocks == 1:
        counters = counters[: min(n, RUN)]  # one short block: no lane beyond what is asked for
    words = philox((counters, parameter, step, stream), seed)
    lanes = (*box_muller(words[0], words[1]), *box_muller(words[2], words[3]))
    flat = torch.stack([z.view(blocks, -1) for z in lanes], dim=1).reshape(-1) if n else counters.float()
    return flat[:n].view(shape).to(dtype)


def philox(counter: tuple[Tensor, int, int, int], seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ten rounds on a 128-bit counter under a 64-bit key; words are int64 tensors holding 32 bits
    each."""
    first = counter[0] & MASK
    c0, c1, c2, c3 = first, *(torch.full_like(first[:1], word & MASK) for word in counter[1:])
    k0, k1 = seed & MASK, (seed >> 32) & MASK
    for _ in range(ROUNDS):
        # wraps modulo 2⁶⁴, of which all bits are kept
        p0, p1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (p1 >> 32 & MASK) ^ c1 ^ k0, p1 & MASK, (p0 >> 32 & MASK) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + KEY_STEPS[0]) & MASK, (k1 + KEY_STEPS[1]) & MASK
    return c0, c1, c2, c3


def box_muller(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two words of 32 random bits → two independent standard normals, in float32."""
    u = ((x >> 1).to(torch.float32) + 0.5) * (1 / 2**31)
    radius = exact_sqrt(log_(u) * -2.0)
    # signed, in [−1, 1)
    quarter = (((y << 2 & MASK) ^ 0x80000000) - 0x80000000).to(torch.float32) * (1 / 2**31)
    square = quarter * quarter
    sin, cos = quarter * horner(square, SIN_POLY), horner(square, COS_POLY)
    swap, flip = (y >> 31 & 1).bool(), (y >> 30 & 1).bool()
    radius = torch.where(flip, -radius, radius)
    return radius * torch.where(swap, sin, cos), radius * torch.where(swap, cos, sin)


def exact_sqrt(x: Tensor) -> Tensor:
    """√x in float32 to the last bit. Torch's own (MKL) misses it in one of six numbers on the CPU;
    a double's root, off by at most a unit in its last place, always rounds to the right float.
    Doubles keep torch's root.
    """
    return torch.sqrt(x.double()).to(x.dtype)


def log_(u: Tensor) -> Tensor:
    """log u for u in (0, 1]: exponent · ln 2 + a polynomial in the mantissa around 1."""
    shifted = u.view(torch.int32) - SQRT_HALF_BITS
    exponent = (shifted >> 23).to(torch.float32)
    f = ((shifted & 0x7FFFFF) + SQRT_HALF_BITS).view(torch.float32) - 1.0
    return exponent * LN2 + f * horner(f, LOG_POLY)


def horner(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Highest power first; one rounding per multiplication and one per addition."""
    total = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        total = total * x + c
    return total
