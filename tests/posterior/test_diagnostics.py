"""Chains whose effective sample size, R-hat, autocorrelation and distances are known."""

import math
import sys

import numpy as np
import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior.diagnostics import (
    autocorrelation,
    correlation_time,
    distance_growth,
    draws_needed,
    effective_sample_size,
    halves,
    lag_time,
    load_arviz,
    project,
    r_hat,
    r_hat_limit,
    relative_distance,
    suggested_thinning,
    unbiased_time,
)


def ar1(rho, chains, draws, seed=0):
    """x_t = ρ·x_{t−1} + √(1−ρ²)·ξ, from its stationary law N(0, 1)."""
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho**2) * rng.normal(size=chains)
    return x


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("chains", [1, 4])
def test_effective_sample_size_and_time_of_an_ar1_chain(rho, chains):
    """The estimate strays by some per cent at 20,000 draws; 20 % would be a wrong formula."""
    x = ar1(rho, chains, 20_000 // chains)
    expected = min(x.size, x.size * (1 - rho) / (1 + rho))
    assert effective_sample_size(x) == pytest.approx(expected, rel=0.2)
    assert correlation_time(x) == pytest.approx(max(1.0, x.size / expected), rel=0.2)
    assert autocorrelation(x, 5) == pytest.approx(rho ** np.arange(6), abs=0.06)


@pytest.mark.parametrize(("chains", "draws"), [(1, 8), (2, 8), (4, 10), (2, 40)])
def test_effective_draws_are_never_more_than_the_lags_allow_nor_than_there_are(chains, draws):
    """ArviZ alone gives n·log₁₀ n for short chains, which is more than n from ten draws on."""
    arviz, capped = load_arviz(), 0
    for seed in range(40):
        for rho in (-0.6, 0.0, 0.6):
            x = ar1(rho, chains, draws, seed)
            ess = effective_sample_size(x)
            assert 0 < ess <= x.size / lag_time(x) <= x.size
            capped += ess < 0.99 * float(arviz.ess(x, method="bulk"))
    assert capped > 5


def test_every_sample_better_than_the_one_before_is_worth_few():
    """Two chains of eight that rise: lag-1 correlation .6, and not sixteen independent draws."""
    x = -np.exp(-np.arange(8.0) / 3) + 0.01 * ar1(0.0, 2, 8)
    assert autocorrelation(x, 1)[1] > 0.4
    assert effective_sample_size(x) < 8


def test_the_time_of_short_chains_is_not_too_short():
    """AR(1) with ρ = .7 has τ = 5.7; from four chains of 40 the median comes near."""
    x = [ar1(0.7, 4, 40, seed) for seed in range(40)]
    assert np.median([unbiased_time(values) for values in x]) == pytest.approx(5.7, rel=0.15)
    assert np.median([lag_time(values) for values in x]) < 5
    assert np.median([unbiased_time(ar1(0.0, 4, 40, seed)) for seed in range(40)]) < 1.3


def test_thinning_keeps_every_tau_th():
    assert [suggested_thinning(time) for time in (1.0, 1.4, 18.7, math.nan)] == [1, 1, 19, 1]


def test_r_hat_of_chains_that_agree_and_that_do_not():
    x = ar1(0.3, 4, 500)
    assert r_hat(x) < 1.02
    assert r_hat(x + np.array([[0.0], [0.0], [0.0], [2.0]])) > 1.1
    # same mean, other spread: rank-normalised sees it
    assert r_hat(x * np.array([[1.0], [1.0], [1.0], [8.0]])) > 1.1
    assert r_hat(x + np.linspace(0, 4, 500)) > 1.1  # a drift that all share


@pytest.mark.parametrize("chains", [2, 4])
@pytest.mark.parametrize("draws", [8, 50, 400])
def test_r_hat_is_that_of_arviz(chains, draws):
    """Rank-normalised, split, the larger of bulk and folded; theirs needs two chains."""
    for seed in range(5):
        x = ar1(0.3, chains, draws, seed) * np.linspace(1, 2, chains)[:, None]
        expected = float(load_arviz().rhat(x, method="rank"))
        assert r_hat(x) == pytest.approx(expected, rel=1e-6)


def test_one_chain_is_compared_with_itself():
    x = ar1(0.3, 1, 500)
    assert r_hat(x) < 1.02
    assert r_hat(x + np.linspace(0, 4, 500)) > 1.1
    split = np.concatenate([x[:, :250], x[:, 250:]])  # theirs splits once more
    assert r_hat(x) == pytest.approx(float(load_arviz().rhat(split, method="rank")), abs=0.01)


def test_odd_numbers_lose_their_middle():
    assert halves(np.arange(5.0)[None]).tolist() == [[0, 1], [3, 4]]


@pytest.mark.parametrize(("chains", "draws"), [(1, 16), (1, 60), (2, 8), (2, 40), (4, 20), (4, 200)])
@pytest.mark.parametrize("predictions", [1, 17])
def test_the_limit_lets_independent_draws_pass(chains, draws, predictions):
    """2 % of cases, nearly: 200 of them pass 6.5 % with probability below 10⁻³ (binomial)."""
    rng = np.random.default_rng(draws)
    limit = r_hat_limit(chains, draws, predictions)
    worst = [
        max(r_hat(rng.normal(size=(chains, draws))) for _ in range(predictions))
        for _ in range(200 if predictions == 1 else 40)
    ]
    assert sum(value > limit for value in worst) <= (13 if predictions == 1 else 5)
    # not far too wide either: the 60 % quantile is well below, the worst not by much
    if limit > 1.01:
        assert max(worst) - 1 > 0.5 * (limit - 1)


def test_the_limit_is_that_of_the_literature_where_draws_are_many():
    assert r_hat_limit(4, 1000) == r_hat_limit(4, 1000, 17) == 1.01
    assert r_hat_limit(4, 100, 17) > 1.01
    assert r_hat_limit(4, 100, 17, time=3.0) > r_hat_limit(4, 100, 17)
    assert r_hat_limit(2, 8, 17) > 1.5
    needed = draws_needed(4, 17, 1.1)
    assert r_hat_limit(4, needed, 17) <= 1.1 < r_hat_limit(4, needed - 2, 17)
    assert draws_needed(1, 17, 1.1) > draws_needed(2, 17, 1.1) > needed


def test_what_cannot_be_told_is_nan_and_silent(recwarn):
    constant, short = np.ones((2, 10)), ar1(0.0, 2, 3)
    for numbers in (constant, short, np.full((2, 10), np.nan)):
        assert math.isnan(r_hat(numbers))
        assert math.isnan(effective_sample_size(numbers))
        assert math.isnan(correlation_time(numbers))
    assert math.isnan(r_hat(ar1(0.0, 1, 7)))
    assert np.isnan(autocorrelation(constant, 3)).all()
    assert r_hat(np.array([[1.0] * 8, [2.0] * 8])) == math.inf
    assert not recwarn.list


def test_projections_are_fixed_by_the_name_and_keep_distances():
    a, b = torch.randn(2, 300, 40, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    assert project(a, "w").tolist() == project(a.clone(), "w").tolist()
    assert project(a, "w").tolist() != project(a, "v").tolist()
    assert len(set(project(a, "w").tolist())) == 4
    assert project(a + b, "w") == pytest.approx(project(a, "w") + project(b, "w"), abs=1e-9)
    squares = np.square(np.concatenate([project(a - b, f"layer {number}") for number in range(100)]))
    error = squares.std() / math.sqrt(400)
    assert abs(squares.mean() - float((a - b).square().mean())) < 5 * error


def test_relative_distance():
    assert relative_distance(torch.tensor([3.0, 0.0]), torch.tensor([3.0, 4.0])) == pytest.approx(0.8)
    assert relative_distance(torch.ones(2), torch.zeros(2)) == math.inf
    assert relative_distance(torch.zeros(2), torch.zeros(2)) == 0


@pytest.mark.parametrize(("kind", "expected"), [("straight", 2.0), ("walk", 1.0), ("settled", 0.0)])
def test_growth_tells_straight_walking_and_settled_apart(kind, expected):
    steps = np.random.default_rng(1).normal(size=(2, 64, 40))
    path = {"straight": np.arange(64.0)[None, :, None] * np.ones((2, 1, 40)), "walk": steps.cumsum(1), "settled": steps}
    assert distance_growth({"w": path[kind]}, {"w": 100}) == pytest.approx(expected, abs=0.15)


def test_growth_weighs_layers_by_their_size():
    steps = np.random.default_rng(1).normal(size=(2, 64, 40))
    mixed = {"walk": steps.cumsum(1), "settled": 100 * steps}
    assert distance_growth(mixed, {"walk": 10**9, "settled": 1}) > 0.8
    assert distance_growth(mixed, {"walk": 1, "settled": 10**9}) < 0.2
    assert math.isnan(distance_growth({"w": np.ones((1, 8, 4))}, {"w": 1}))


def test_without_arviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(LangevinError, match=r"install langevin\[report\]"):
        load_arviz()
