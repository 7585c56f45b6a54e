"""Temperatures of draws whose temperature is known exactly."""

import math

import numpy as np
import pytest
import torch

from langevin.posterior.temperature import (
    Estimate,
    configurational_temperature,
    kinetic_temperature,
    pooled,
    virial,
)
from tests.samplers.targets import CASES, CORRELATED, Case, run_chains

LIMIT = 5.5


def exact_virials(temperature, prior_var=CORRELATED.prior_var, draws=4000):
    """θ·∇U of exact draws from the tempered posterior, as two chains."""
    rng = np.random.default_rng(3)
    theta = rng.multivariate_normal(CORRELATED.mean, CORRELATED.posterior(temperature), size=draws)
    grads = CORRELATED.gradient(torch.tensor(theta)).numpy()
    made = [
        virial(torch.tensor(t), torch.tensor(g), num_data=CORRELATED.num_data, prior_var=prior_var)
        for t, g in zip(theta, grads, strict=True)
    ]
    return np.array(made).reshape(2, -1)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_exact_draws_have_their_configurational_temperature(temperature):
    measured = configurational_temperature(exact_virials(temperature), 2)
    assert abs(measured.value - temperature) < LIMIT * measured.error
    assert measured.error < 0.1 * temperature + 0.02


def test_forgetting_the_prior_is_noticed():
    """A third of the force is the prior's: without it the reading must leave the error."""
    measured = configurational_temperature(exact_virials(0.5, prior_var=None), 2)
    assert abs(measured.value - 0.5) > LIMIT * measured.error


def test_a_flat_direction_reads_zero():
    """Documented: where U does not confine, the reading is no temperature."""
    theta = torch.randn(100, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    virials = np.array([[virial(t, torch.zeros(3), num_data=10, prior_var=None) for t in theta]])
    assert configurational_temperature(virials, 3) == Estimate(0.0, 0.0)


def test_the_error_counts_dependent_draws_once():
    independent = exact_virials(0.5, draws=1000)
    repeated = np.repeat(independent, 8, axis=1)
    once, again = (configurational_temperature(v, 2).error for v in (independent, repeated))
    assert again == pytest.approx(once, rel=0.25)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
@pytest.mark.parametrize("name", ["sghmc", "sgnht", "santa"])
def test_momenta_have_their_kinetic_temperature(name, temperature):
    """SGHMC in small steps (its law is exact up to O(lr)); the thermostats of the others see to it
    by themselves."""
    small = Case("sghmc", lr=0.005, steps=600, injected=0.3, settings={"friction": 0.3})
    case = small if name == "sghmc" else CASES[name]
    run = run_chains(case, CORRELATED, temperature=temperature, chains=2048)
    momentum = torch.tensor(run.momentum)
    gain = torch.tensor(case.gain) if name == "santa" else None
    friction = case.injected if run.friction is None else run.friction
    measured = kinetic_temperature(momentum, lr=case.lr, num_data=CORRELATED.num_data, friction=friction, gain=gain)
    assert abs(measured.value - temperature) < LIMIT * measured.error
    assert measured.error == pytest.approx(measured.value * math.sqrt(2 / 4096))


def test_gradient_noise_makes_sghmc_hot_and_it_shows():
    case = CASES["sghmc"]
    run = run_chains(case, CORRELATED, temperature=0.1, chains=2048, gradient_std=0.5)
    momentum = torch.tensor(run.momentum)
    assert kinetic_temperature(momentum, lr=case.lr, num_data=40, friction=0.3).value > 0.2


def test_pooling_weighs_by_size():
    both = pooled([(Estimate(1.0, 0.1), 100), (Estimate(2.0, 0.2), 300)])
    assert both.value == pytest.approx(1.75)
    assert both.error == pytest.approx(math.hypot(0.1 * 100, 0.2 * 300) / 400)
