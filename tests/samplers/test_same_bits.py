"""The same bits on any number of threads, after a resume, wherever a parameter stands; and priors
with a mean."""

import copy
import math

import pytest
import torch
from torch.nn import functional as F

from langevin.samplers import PSGLD
from tests.samplers.targets import (
    assert_z,
    every_dtype,
    every_sampler,
    kernel_and_plain,
    make,
    parameter,
)
from tests.samplers.training import LanguageModel, random_gradients, through_files, train


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@kernel_and_plain
@every_sampler
def test_same_bits_on_one_and_two_threads(name, fused, dtype):
    """100 003 elements, beyond the size from which work is split among threads; SGNHT sums over all
    of them.

    Its thermostat is made quick, so that one wrong bit of the sum shows in the friction.
    """
    quick, steps = ({"thermostat_rate": 1.0}, 4) if name == "sgnht" else ({}, 1)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            theta = parameter(100_003, dtype=dtype)
            sampler = make(name, [theta], lr=0.01, num_data=100, prior_var=1.0, fused=fused, **quick)
            random_gradients(sampler, steps)
            results.append({"θ": theta.detach()} | sampler.state[theta])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(results[0][key], results[1][key]) for key in results[0])


def noise_of_two_parameters(name, seed=0):
    """What one step without gradient does to two parameters of one shape."""
    pair = [parameter(40, 50), parameter(40, 50)]
    for p in pair:
        p.grad = torch.zeros_like(p)
    make(name, pair, lr=0.1, num_data=10, seed=seed).step()
    return [p.detach().flatten() for p in pair]


@every_sampler
def test_seed_and_parameter_select_the_noise(name):
    """Same seed same bits; another seed or another parameter of the same shape, uncorrelated
    noise."""
    first, again, other = (noise_of_two_parameters(name, seed) for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    pairs = {"seeds": (first[0], other[0]), "parameters": (first[0], first[1])}
    assert all((a == b).float().mean() < 0.01 for a, b in pairs.values())
    assert_z({key: float(torch.corrcoef(torch.stack(pair))[0, 1]) * math.sqrt(2000) for key, pair in pairs.items()})


@every_sampler
def test_a_parameter_of_a_later_group_gets_the_noise_of_its_number(name):
    together, apart = ([parameter(6), parameter(6)] for _ in range(2))
    one = make(name, together, lr=0.1, num_data=10)
    two = make(name, apart[:1], lr=0.1, num_data=10)
    two.add_param_group({"params": apart[1:]})
    random_gradients(one, 1)
    random_gradients(two, 1)
    assert all(torch.equal(a, b) for a, b in zip(together, apart, strict=True))
    assert (together[0] != together[1]).all()


@every_dtype
@every_sampler
def test_interrupted_and_resumed_equals_uninterrupted(name, dtype):
    settings = {"lr": 0.05, "num_data": 100, "prior_var": 1.0, "temperature": 0.5, "seed": 7}
    whole = LanguageModel().to(dtype)
    train(whole, make(name, whole.parameters(), **settings), steps=10)

    half = LanguageModel().to(dtype)
    sampler = make(name, half.parameters(), **settings)
    train(half, sampler, steps=4)
    saved = through_files(sampler.state_dict())
    resumed = copy.deepcopy(half)
    # all of it is overwritten by the state
    fresh = make(name, resumed.parameters(), lr=1.0, num_data=1, seed=99)
    fresh.load_state_dict(saved)
    train(resumed, fresh, steps=6, first=4)
    assert all(torch.equal(a, b) for a, b in zip(resumed.parameters(), whole.parameters(), strict=True))


@every_sampler
@kernel_and_plain
def test_a_prior_with_a_mean_is_a_prior_around_zero_of_the_difference(name, fused):
    """θ under N(μ, σ²) moves as δ = θ − μ under N(0, σ²), with the gradient at θ: at every step,
    for every sampler."""
    settings = {"lr": 0.05, "num_data": 20, "prior_var": 0.3, "temperature": 0.5, "seed": 7, "fused": fused}
    mean, start = torch.linspace(-2, 2, 12, dtype=torch.float64), torch.linspace(1, -1, 12, dtype=torch.float64)
    theta, delta = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start - mean)
    beside = torch.nn.Parameter(torch.ones(3, dtype=torch.float64)), torch.nn.Parameter(torch.ones(3).double())
    centred, plain = make(name, [theta, beside[0]], **settings), make(name, [delta, beside[1]], **settings)
    centred.set_prior_mean(theta, mean)
    for step in range(20):
        if step == 10:  # the mean is part of the state
            saved = through_files(centred.state_dict())
            centred = make(name, [theta, beside[0]], lr=1.0, num_data=1)
            centred.load_state_dict(saved)
        for sampler, weight, at in ((centred, theta, theta), (plain, delta, delta + mean)):
            weight.grad = (at.detach() - 0.5) ** 3
            other = beside[sampler is plain]
            other.grad = other.detach().clone()
            sampler.step()
    torch.testing.assert_close(theta.detach(), delta.detach() + mean, rtol=0, atol=1e-12)
    assert torch.equal(*beside)
    assert not torch.equal(theta, start)


def test_a_mean_of_another_shape_or_for_sparse_gradients_is_refused():
    theta = torch.nn.Parameter(torch.zeros(4, 2))
    sampler = PSGLD([theta], lr=0.1, num_data=10, seed=0, prior_var=1.0)
    with pytest.raises(ValueError, match=r"of shape \(4, 2\), got \(2,\)"):
        sampler.set_prior_mean(theta, torch.ones(2))
    sampler.set_prior_mean(theta, torch.ones(4, 2))
    F.embedding(torch.tensor([1]), theta, sparse=True).sum().backward()
    with pytest.raises(ValueError, match="dense under a prior with a mean"):
        sampler.step()
    assert torch.equal(theta, torch.zeros(4, 2))
