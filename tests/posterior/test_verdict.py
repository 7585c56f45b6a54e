"""Each rule of the verdict, on both sides of its threshold, and how often it errs."""

import math

import numpy as np
import pytest

from langevin.posterior.diagnostics import draws_needed, r_hat, r_hat_limit, unbiased_time
from langevin.posterior.trend import trend
from langevin.posterior.verdict import Evidence, TemperatureReading, judge
from tests.posterior.test_diagnostics import ar1

LIMIT = r_hat_limit(4, 40, 9)
SLOW = r_hat_limit(4, 40, 9, 2.0)


def evidence(**changes):
    settings = {
        "chains": 4, "draws": 40, "predictions": 9, "r_hat": 1.02, "r_hat_within": 1.03,
        "trend": 0.5, "ess": 100.0, "time": 1.0, "growth": 0.8,
    }  # fmt: skip
    return Evidence(**(settings | changes))


def codes(**changes):
    return [finding.code for finding in judge(evidence(**changes))]


ONE = {"chains": 1, "draws": 120}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, "mixing"),
        ({"draws": 7}, "too few samples to tell"),
        ({"r_hat": math.nan}, "too few samples to tell"),
        ({"r_hat_within": math.nan}, "too few samples to tell"),
        ({"time": math.nan}, "too few samples to tell"),
        ({"trend": 0.01}, "still moving"),
        ({"trend": 0.011}, "mixing"),
        ({"trend": 0.001, "draws": 8, "chains": 2, "r_hat": 1.49}, "still moving"),
        ({"trend": math.nan}, "mixing"),
        ({"r_hat": LIMIT - 0.001}, "mixing"),
        ({"r_hat": LIMIT + 0.001}, "stuck in one mode"),
        ({"r_hat": math.inf}, "stuck in one mode"),
        ({"r_hat": 3.0, "r_hat_within": 3.0}, "still moving"),
        ({"r_hat": LIMIT + 0.001, "time": 2.0}, "too few samples to tell"),
        ({"r_hat": SLOW + 0.001, "time": 2.0}, "stuck in one mode"),
        ({"r_hat": 1.0, "draws": 8}, "too few samples to tell"),  # they would hardly show it
        ({"chains": 2, "draws": draws_needed(2, 9, 1.1)}, "mixing"),
        ({"chains": 2, "draws": draws_needed(2, 9, 1.1) - 2}, "too few samples to tell"),
        (ONE | {"r_hat": 1.3, "r_hat_within": 1.3}, "still moving"),
        (ONE | {"growth": 0.2}, "mixing within one mode"),
        (ONE | {"growth": 0.4}, "mixing"),
        ({"growth": 0.2}, "mixing"),
        ({"is_chain": False}, "averaged trajectory, not a chain"),
        ({"is_chain": False, "draws": 5, "r_hat": 9.0}, "averaged trajectory, not a chain"),
    ],
)
def test_how_it_mixes(changes, code):
    assert codes(**changes) == [code]


def verdict_of(predictions):
    """The verdict on predictions [predictions, chains, draws] alone."""
    count, chains, draws = predictions.shape
    within = [r_hat(values[k : k + 1]) for values in predictions for k in range(chains)]
    [finding] = judge(evidence(
        chains=chains, draws=draws, predictions=count, r_hat=max(map(r_hat, predictions)),
        r_hat_within=max(within), trend=trend(predictions), ess=1.0,
        time=float(np.median([unbiased_time(values) for values in predictions])),
    ))  # fmt: skip
    return finding.code


def predictions_of(rho, chains, draws, seed):
    return np.stack([ar1(rho, chains, draws, 100 * seed + number) for number in range(9)])


@pytest.mark.parametrize(("chains", "draws"), [(1, 100), (2, 50), (4, 40)])
def test_independent_draws_pass(chains, draws):
    """At least 95 % of cases: 55 of 60 and fewer have a probability of 8 % at most even at 95 %."""
    found = [verdict_of(predictions_of(0.0, chains, draws, seed)) for seed in range(60)]
    assert found.count("mixing") >= 55


@pytest.mark.parametrize(("chains", "draws"), [(1, 8), (2, 8), (4, 16)])
def test_few_independent_draws_are_not_certified(chains, draws):
    found = [verdict_of(predictions_of(0.0, chains, draws, seed)) for seed in range(30)]
    assert "mixing" not in found
    assert found.count("too few samples to tell") >= 27


@pytest.mark.parametrize(("chains", "draws"), [(1, 8), (2, 8), (4, 40)])
def test_drifting_chains_are_caught(chains, draws):
    """A rise from −3 to 3 in standard deviations of the draws: every case."""
    rise = np.linspace(-3, 3, draws)
    found = [verdict_of(predictions_of(0.0, chains, draws, seed) + rise) for seed in range(20)]
    assert found == ["still moving"] * 20


@pytest.mark.parametrize("chains", [2, 4])
def test_two_modes_are_caught(chains):
    """One chain elsewhere by three standard deviations in a third of the predictions: 95 %."""
    found = []
    for seed in range(20):
        predictions = predictions_of(0.3, chains, 50, seed)
        predictions[::3, 0] += 3
        found.append(verdict_of(predictions))
    assert found.count("stuck in one mode") >= 19


def test_slow_chains_are_not_taken_for_modes():
    """AR(1) with ρ = .7 and 40 draws of each chain: worth eight; nobody can tell."""
    found = [verdict_of(predictions_of(0.7, 4, 40, seed)) for seed in range(20)]
    assert found.count("stuck in one mode") <= 2
    assert "mixing" not in found


@pytest.mark.parametrize(
    ("measured", "error", "trusted", "expected"),
    [
        (1.0, 0.01, True, []),
        (1.4, 0.01, True, []),
        (1.6, 0.01, True, ["too hot"]),
        (1.6, 0.3, True, []),
        (1.6, 0.01, False, []),
        (0.7, 0.01, True, []),
        (0.6, 0.01, True, ["not spread out"]),
        (-2.0, 0.01, True, ["not spread out"]),
        (0.6, 0.2, True, []),
        (math.nan, 0.01, True, []),
    ],
)
def test_temperature(measured, error, trusted, expected):
    reading = TemperatureReading("kinetic", 1.0, measured, error, trusted)
    assert codes(temperatures=(reading,)) == ["mixing", *expected]


def test_thresholds_are_relative_to_what_was_injected():
    reading = TemperatureReading("kinetic", 0.1, 0.16, 0.001)
    assert codes(temperatures=(reading,)) == ["mixing", "too hot"]


def test_a_temperature_below_zero_is_put_into_words():
    reading = TemperatureReading("configurational", 1.0, -2.0, 0.1)
    words = judge(evidence(temperatures=(reading,)))[1].words
    assert "-2 ± 0.1 where 1 was injected: below zero, which no settled chain has" in words
    assert "push the weights outwards" in words


def test_an_optimiser_has_no_temperature():
    reading = TemperatureReading("configurational", 0.0, 0.3, 0.01)
    assert codes(temperatures=(reading,), is_chain=False) == ["averaged trajectory, not a chain"]
    words = judge(evidence(is_chain=False))[0].words
    assert "R-hat and effective sample size mean nothing here" in words


def test_clipping():
    assert codes(clipped=0.11) == ["mixing", "clipped too often"]
    assert codes(clipped=0.09) == ["mixing"]


def test_words_carry_the_numbers():
    words = judge(evidence(r_hat=1.5))[0].words
    assert f"R-hat 1.50, limit {LIMIT:.2f}" in words
    assert "160 samples, worth 100 independent" in judge(evidence())[0].words
    assert "p = 0.002 of a trend" in judge(evidence(trend=0.002))[0].words
    few = judge(evidence(chains=2, draws=10))[0].words
    assert f"about {draws_needed(2, 9, 1.1)} of each chain could tell" in few
    assert "11%" in judge(evidence(clipped=0.11))[1].words
