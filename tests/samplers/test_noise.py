"""The generator against its published vectors, its output against the normal law.

z-scores are refused at |z| ≥ 5.5 (probability 3.8·10⁻⁸), probabilities below 10⁻⁷; with some 60 and
30 comparisons a right generator under a fresh seed fails once in 10⁵ runs, and the seeds are fixed.
The samples are large (a million draws), so that errors of one percent in a variance or of 0.006 in
a correlation are seen.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from langevin.samplers.noise import (
    COS_POLY,
    SIN_POLY,
    START_STREAM,
    STEP_STREAM,
    box_muller,
    horner,
    log_,
    normal,
    philox,
)
from tests.samplers.targets import LIMIT, assert_z

BIG = 2**20


@pytest.fixture(scope="module")
def draws() -> np.ndarray:
    return normal((BIG,), seed=2024, parameter=3, step=17).double().numpy()


def double_factorial(n: int) -> int:
    return math.prod(range(n, 0, -2))


def correlation_z(x: np.ndarray, y: np.ndarray) -> float:
    return float((x * y).mean() * math.sqrt(len(x)))


def dependence_z(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Of the values, and of their squares, which Box-Muller's common radius would betray."""
    return {"values": correlation_z(x, y), "squares": correlation_z(x**2 - 1, y**2 - 1) / 2}


# ---------------------------------------------------------------- Philox


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_philox_known_answers(counter, key, expected):
    """Salmon et al.'s kat_vectors for philox4x32-10; word 0 of the key is the low half of the
    seed."""
    words = philox((torch.tensor([counter[0]]), *counter[1:]), key[0] | key[1] << 32)
    assert " ".join(f"{int(word):08x}" for word in words) == expected


def test_philox_is_elementwise():
    """A counter among many gives what it gives alone."""
    together = philox((torch.arange(1000), 5, 6, 7), 89)
    alone = philox((torch.tensor([613]), 5, 6, 7), 89)
    assert all(int(many[613]) == int(one) for many, one in zip(together, alone, strict=True))


# ---------------------------------------------------------------- polynomials


def test_log_is_accurate():
    """Relative, also near 1 where log u → 0, over the uniforms that Box-Muller makes."""
    u = torch.cat([torch.arange(1, 2**20 + 1, dtype=torch.float32) / 2**20, torch.logspace(-9, 0, 10_000).clamp(max=1)])
    exact = torch.log(u.double())
    error = (log_(u).double() - exact).abs()
    assert (error <= 3e-7 * exact.abs()).all()
    smallest = torch.tensor([0.5 / 2**31])
    assert math.sqrt(-2 * log_(smallest)) == pytest.approx(6.66, abs=0.01)


def test_sine_and_cosine_are_accurate():
    t = torch.linspace(-1, 1, 200_001)
    angle = t.double() * math.pi / 4
    square = t * t
    sine = t * horner(square, SIN_POLY)
    assert ((sine.double() - angle.sin()).abs() <= 3e-7 * angle.sin().abs()).all()
    assert ((horner(square, COS_POLY).double() - angle.cos()).abs() <= 3e-7 * angle.cos()).all()


def test_box_muller_against_double_precision():
    """Radius and angle as the docstring has them: u = (⌊x/2⌋+½)/2³¹; two bits of y choose the
    quadrant."""
    x, y = (philox((torch.arange(20_000), 0, 0, 0), seed)[0] for seed in (1, 2))
    a, b = (z.double() for z in box_muller(x, y))
    u = ((x >> 1).float() + 0.5).double() / 2**31
    radius = (a.square() + b.square()).sqrt()
    torch.testing.assert_close(radius, (-2 * u.log()).sqrt(), rtol=5e-7, atol=1e-9)
    # uniform on the circle, hence independent normals
    angle = torch.atan2(b, a) / (2 * math.pi) % 1
    assert stats.kstest(angle.numpy(), "uniform").pvalue > 1e-7
    assert abs(stats.pearsonr(angle.numpy(), radius.numpy()).statistic) * math.sqrt(20_000) < LIMIT


def test_extreme_words_are_finite():
    words = torch.tensor([0, 1, 2, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xBFFFFFFF, 0xC0000000, 0xFFFFFFFF])
    x, y = torch.cartesian_prod(words, words).T
    for z in box_muller(x, y):
        assert z.isfinite().all()
        assert z.abs().max() < 6.67


# ---------------------------------------------------------------- the normal law


def test_moments(draws):
    """E xᵏ = (k−1)!! for even k, 0 for odd; the variance of xᵏ is (2k−1)!! minus its square."""
    z = {}
    for k in range(1, 7):
        expected = 0 if k % 2 else double_factorial(k - 1)
        deviation = math.sqrt((double_factorial(2 * k - 1) - expected**2) / BIG)
        z[f"moment {k}"] = ((draws**k).mean() - expected) / deviation
    assert_z(z)


def test_every_lane_is_normal(draws):
    """Counter j fills j, j+256, j+512 and j+768 of a block: four lanes, four places for a
    mistake."""
    for lane in draws.reshape(-1, 4, 256).swapaxes(0, 1).reshape(4, -1):
        assert stats.kstest(lane, "norm").pvalue > 1e-7
        assert_z({"mean": lane.mean() * math.sqrt(len(lane)), "var": ((lane**2).mean() - 1) * math.sqrt(len(lane) / 2)})


def test_kolmogorov_smirnov(draws):
    assert stats.kstest(draws, "norm").pvalue > 1e-7


def test_tails():
    """Counts beyond ±σ among four million draws: 1.2 expected on each side beyond 5σ."""
    x = torch.cat([normal((BIG,), seed=8, parameter=0, step=step) for step in range(4)])
    for sigma in (1.0, 2.0, 3.0, 4.0, 4.5, 5.0):
        for count in (int((x > sigma).sum()), int((x < -sigma).sum())):
            assert stats.binomtest(count, x.numel(), float(stats.norm.sf(sigma))).pvalue > 1e-7, sigma


# ---------------------------------------------------------------- independence


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 255, 256, 257, 512, 768, 1024, 2048, 4096])
def test_no_correlation_between_elements(draws, lag):
    a, b = draws[:-lag], draws[lag:]
    assert_z(dependence_z(a, b))


HOME = {"seed": 5, "parameter": 2, "step": 9, "stream": STEP_STREAM}
ELSEWHERE = {
    "next step": {"step": 10}, "lagged step": {"step": 41}, "late step": {"step": 10**6},
    "next parameter": {"parameter": 3},
    "next seed": {"seed": 6}, "high half of the seed": {"seed": 5 + 2**32}, "other stream": {"stream": START_STREAM},
    "swapped words": {"parameter": 9, "step": 2}, "swapped seed and step": {"seed": 9, "step": 5},
}


@pytest.mark.parametrize("change", ELSEWHERE)
def test_no_correlation_between_calls(change):
    n = 2**17
    a, b = (normal((n,), **which).double().numpy() for which in (HOME, HOME | ELSEWHERE[change]))
    assert (a == b).mean() < 1e-4
    assert_z(dependence_z(a, b))


def test_one_element_over_many_steps():
    """The path of one weight's noise: normal, and uncorrelated over lags."""
    path = torch.stack([normal((8,), seed=1, parameter=0, step=step) for step in range(1500)]).double().numpy()
    for element in path.T[:2]:
        assert stats.kstest(element, "norm").pvalue > 1e-7
    lags = (1, 2, 10, 100)
    assert_z({f"lag {lag}": correlation_z(path[:-lag].ravel(), path[lag:].ravel()) for lag in lags})


def test_nothing_repeats():
    """The first draws of 1280 calls are pairwise different: no two calls share a counter and
    key."""
    calls = itertools.product(range(4), range(8), range(20), (STEP_STREAM, START_STREAM))
    first = {
        tuple(normal((4,), seed=seed, parameter=parameter, step=step, stream=stream).tolist())
        for seed, parameter, step, stream in calls
    }
    assert len(first) == 4 * 8 * 20 * 2
    assert len({value for row in first for value in row}) > 0.999 * 4 * len(first)


def test_elements_do_not_repeat(draws):
    """Single float32 values collide by chance among a million draws; runs of two do not."""
    pairs = draws.astype(np.float32).view(np.uint32).astype(np.uint64)
    assert len(np.unique(pairs[:-1] << np.uint64(32) | pairs[1:])) == BIG - 1


# ---------------------------------------------------------------- shape and dtype


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 1023, 1024, 1025, 4096, 5000])
def test_a_shorter_draw_is_a_prefix(n):
    """Every element is where it is whatever the size: the lanes of a short block stay in their
    places."""
    long = normal((6000,), seed=4, parameter=1, step=2)
    assert torch.equal(normal((n,), seed=4, parameter=1, step=2), long[:n])


def test_shape_only_reshapes():
    flat = normal((2640,), **HOME)
    for shape in ((2640,), (20, 132), (2, 3, 440), (2640, 1)):
        z = normal(shape, **HOME)
        assert z.shape == shape
        assert torch.equal(z.flatten(), flat)
    assert normal((), **HOME) == flat[0]
    assert normal((0, 5), **HOME).shape == (0, 5)


def test_double_precision_gets_the_same_draws():
    single, double = (normal((3000,), **HOME, dtype=dtype) for dtype in (torch.float32, torch.float64))
    assert single.dtype == torch.float32
    assert double.dtype == torch.float64
    assert torch.equal(double, single.double())


def test_the_bits_are_pinned():
    """A change of these numbers is a change of every recorded run."""
    z = normal((4,), seed=0, parameter=0, step=0)
    pinned = ["0x1.d96d600000000p-1", "-0x1.7254d00000000p-3", "-0x1.45a4fc0000000p+1", "-0x1.30d9300000000p-1"]
    assert [value.hex() for value in z.tolist()] == pinned
