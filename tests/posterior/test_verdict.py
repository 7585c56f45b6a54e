"""Each rule of the verdict, on both sides of its threshold."""

import math

import pytest

from langevin.posterior.verdict import Evidence, Warmth, judge


def evidence(**changes):
    settings = {"chains": 4, "draws": 40, "r_hat": 1.02, "r_hat_within": 1.03, "ess": 100.0, "growth": 0.8}
    return Evidence(**(settings | changes))


def codes(**changes):
    return [finding.code for finding in judge(evidence(**changes))]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, "mixing"),
        ({"draws": 7}, "too few samples to tell"),
        ({"draws": 8}, "mixing"),
        ({"r_hat": math.nan}, "too few samples to tell"),
        ({"r_hat_within": math.nan}, "too few samples to tell"),
        ({"r_hat_within": 1.11}, "still moving"),
        ({"r_hat_within": 1.09}, "mixing"),
        ({"r_hat_within": 1.3, "r_hat": 3.0}, "still moving"),
        ({"r_hat": 1.11}, "stuck in one mode"),
        ({"r_hat": math.inf}, "stuck in one mode"),
        ({"r_hat": 1.09}, "mixing"),
        ({"r_hat": 1.4, "draws": 8}, "mixing"),  # 2/4 is what four independent draws stray
        ({"r_hat": 1.6, "draws": 8}, "stuck in one mode"),
        ({"chains": 1, "growth": 0.2}, "mixing within one mode"),
        ({"chains": 1, "growth": 0.4}, "mixing"),
        ({"chains": 4, "growth": 0.2}, "mixing"),
    ],
)
def test_how_it_mixes(changes, code):
    assert codes(**changes) == [code]


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
    assert codes(temperatures=(Warmth("kinetic", 1.0, measured, error, trusted),)) == ["mixing", *expected]


def test_thresholds_are_relative_to_what_was_injected():
    assert codes(temperatures=(Warmth("kinetic", 0.1, 0.16, 0.001),)) == ["mixing", "too hot"]


def test_an_optimiser_has_no_temperature():
    assert codes(temperatures=(Warmth("configurational", 0.0, 0.3, 0.01),)) == ["mixing", "no temperature"]


def test_clipping():
    assert codes(clipped=0.11) == ["mixing", "clipped too often"]
    assert codes(clipped=0.09) == ["mixing"]


def test_words_carry_the_numbers():
    words = judge(evidence(r_hat=1.5))[0].words
    assert "1.50" in words
    assert "1.10" in words
    assert "160 samples, worth 100 independent" in judge(evidence())[0].words
    assert "160 samples, worth 160 independent" in judge(evidence(ess=190.0))[0].words  # antithetic, by chance mostly
    assert "11%" in judge(evidence(clipped=0.11))[1].words
