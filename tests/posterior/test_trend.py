"""A drift is found, and independent draws are left alone, at the stated rates."""

import math

import numpy as np
import pytest

from langevin.posterior.trend import ALARM, block_length, ranked, trend
from tests.posterior.test_diagnostics import ar1


def followed(rho, chains, draws, seed, predictions=9):
    """Predictions of one chain that have half of their variance in common."""
    common = ar1(rho, chains, draws, 10_000 + seed)
    each = [ar1(rho, chains, draws, 100 * seed + number) for number in range(predictions)]
    return (common + np.stack(each)) / math.sqrt(2)


@pytest.mark.parametrize(("chains", "draws"), [(1, 8), (2, 8), (4, 40)])
def test_independent_draws_are_not_said_to_drift(chains, draws):
    """1 % of cases: more than 7 of 150 have a probability below 10⁻³."""
    alarms = sum(trend(followed(0.0, chains, draws, seed)) <= ALARM for seed in range(150))
    assert alarms <= 7


@pytest.mark.parametrize(("rho", "chains", "draws"), [(0.5, 1, 40), (0.5, 4, 40), (0.7, 2, 60)])
def test_chains_that_wander_are_seldom_said_to_drift(rho, chains, draws):
    """Some 5 % of cases where a chain is ten correlation times long: 12 % is not passed in 60."""
    alarms = sum(trend(followed(rho, chains, draws, seed)) <= ALARM for seed in range(60))
    assert alarms <= 9


@pytest.mark.parametrize(("chains", "draws"), [(1, 8), (2, 8), (1, 40), (4, 40)])
@pytest.mark.parametrize("shape", ["line", "settling", "step"])
def test_a_drift_larger_than_the_noise_is_caught(chains, draws, shape):
    """Of 2.5 times its standard deviation: in nine of ten cases at least; a strict rise always."""
    clock = np.arange(draws) / draws
    rise = {"line": clock, "settling": 1 - np.exp(-3 * clock), "step": (clock > 0.5) * 1.0}[shape]
    rise = 2.5 * (rise - rise.mean()) / rise.std()
    if shape == "step" and draws == 8:
        return  # four before, four after: all that eight draws of one chain could show
    noisy = [trend(rise + followed(0.0, chains, draws, seed)) <= ALARM for seed in range(20)]
    assert sum(noisy) >= 18
    if shape != "step":
        assert trend(rise + 1e-3 * followed(0.0, chains, draws, 0)) <= ALARM


def test_a_drift_of_single_outcomes_is_caught_where_the_likelihood_stays():
    predictions = followed(0.0, 2, 20, 1)
    predictions[1:] += np.linspace(-3, 3, 20) * np.array([1, -1] * 4)[:, None, None]
    assert trend(predictions) <= ALARM


def test_the_scale_does_not_matter_and_what_never_moves_is_nan():
    predictions = followed(0.0, 2, 16, 3)
    assert trend(predictions) == trend(np.exp(predictions)) == trend(5 * predictions - 3)
    assert math.isnan(trend(np.ones((3, 2, 16))))


def test_blocks_are_as_long_as_the_correlation_and_leave_enough():
    lengths = [block_length(followed(0.7, 4, 200, seed)) for seed in range(5)]
    assert 4 <= np.mean(lengths) <= 8  # (1 + ρ)/(1 − ρ) = 5.7
    assert block_length(followed(0.0, 4, 200, 1)) <= 2
    assert block_length(np.arange(40.0)[None, None] ** 3) == 1  # a strict rise
    assert block_length(ar1(0.99, 1, 36)[None]) <= 6


def test_equal_values_share_their_rank():
    assert ranked(np.array([[3.0, 1.0, 3.0, 7.0]])).tolist() == [[1.5, 0, 1.5, 3]]
