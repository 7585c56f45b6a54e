"""The table: every sampler × every check.

Calibration. All statistical checks compare independent Gaussian draws with an exact law by z-scores and fail at
|z| ≥ 5.5, which a correct comparison reaches with probability 3.8·10⁻⁸. A sampler meets 94 comparisons here or fewer,
the whole table 364, so by Bonferroni a right sampler under fresh seeds fails with probability below 3.6·10⁻⁶ and the
table below 1.4·10⁻⁵ (5 would have given 2·10⁻⁴); the seeds are fixed, so that in fact it fails never or always. A
wrong factor of √2 in the noise doubles a variance known to √(2/2048) = 3 %: z ≈ 25. test_mutants.py plants such bugs,
and the slow test at the end holds the z-scores themselves against the normal law over many seeds.
"""

import copy
import doctest
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

from langevin.samplers import PSGLD, SAMPLERS, schedules

from .targets import (
    CASES,
    CORRELATED,
    LIMIT,
    Gaussian,
    assert_z,
    check_first_momentum,
    check_gaussian,
    gaussian_z,
    law_z,
    make,
    normal_z,
    parameter,
    run_chains,
)

every_sampler = pytest.mark.parametrize("name", SAMPLERS)
kernel_and_plain = pytest.mark.parametrize("fused", [None, False], ids=["kernel", "plain"])
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
TWINS = {
    "sgld": (torch.optim.SGD, {}, {}),
    "psgld": (torch.optim.RMSprop, {"alpha": 0.95, "eps": 1e-8}, {"beta": 0.95}),
    "psgld adagrad": (torch.optim.Adagrad, {"eps": 1e-8}, {"preconditioner": "adagrad"}),
    "sghmc": (torch.optim.SGD, {"momentum": 0.8}, {"friction": 0.2}),
    "sgnht": (torch.optim.SGD, {"momentum": 0.8}, {"friction": 0.2}),
    "santa": (torch.optim.RMSprop, {"alpha": 0.95, "eps": 1e-8, "momentum": 0.8}, {"beta": 0.95, "friction": 0.2}),
}


class LanguageModel(torch.nn.Module):
    """The smallest network with all that matters: rows without gradient, recurrence, a softmax head."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = torch.nn.Embedding(30, 8)
        self.lstm = torch.nn.LSTM(8, 8, batch_first=True)
        self.head = torch.nn.Linear(8, 30)
        if tied:
            self.head.weight = self.embedding.weight

    def loss(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.lstm(self.embedding(tokens[:, :-1]))[0])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def train(model, optimizer, steps=20, scheduler=None, first=0):
    """Random tokens of which a third never occur as input; batch i depends on i alone."""
    for i in range(first, first + steps):
        tokens = torch.randint(0, 20, (4, 7), generator=torch.Generator().manual_seed(i))
        optimizer.zero_grad()
        model.loss(tokens).backward()
        optimizer.step()
        if scheduler:
            scheduler.step()


def random_gradients(sampler, steps, first=0):
    """Steps under gradients that depend on the number of the step alone."""
    for i in range(first, first + steps):
        generator = torch.Generator().manual_seed(i)
        for group in sampler.param_groups:
            for p in group["params"]:
                p.grad = torch.randn(p.shape, generator=generator, dtype=p.dtype)
        sampler.step()


# ---------------------------------------------------------------- the optimiser twin


@kernel_and_plain
@every_dtype
@pytest.mark.parametrize("twin", TWINS)
def test_cold_and_flat_is_the_torch_optimiser(twin, dtype, fused):
    cls, theirs, ours = TWINS[twin]
    lr = 0.5 if cls is torch.optim.SGD else 0.01
    reference, model = LanguageModel().to(dtype), LanguageModel().to(dtype)
    optimizer = cls(reference.parameters(), lr=lr, **theirs)
    sampler = make(twin.split()[0], model.parameters(), lr=lr, num_data=100, temperature=0.0, fused=fused, **ours)
    before = copy.deepcopy(model.state_dict())
    tolerance = {"rtol": 1e-4, "atol": 2e-6} if dtype == torch.float32 else {"rtol": 1e-11, "atol": 1e-13}
    for i in range(20):
        train(reference, optimizer, steps=1, first=i)
        train(model, sampler, steps=1, first=i)
        for mine, its in zip(model.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(mine, its, **tolerance)
    assert not torch.allclose(model.head.weight, before["head.weight"], atol=1e-2)


@every_sampler
def test_no_gradient_no_prior_no_temperature_no_motion(name):
    theta = torch.nn.Parameter(torch.randn(5, 3))
    before = theta.detach().clone()
    sampler = make(name, [theta], lr=0.1, num_data=10, temperature=0.0)
    for _ in range(5):
        theta.grad = torch.zeros_like(theta)
        sampler.step()
    assert torch.equal(theta, before)


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
@every_sampler
def test_gaussian_target(name, temperature):
    check_gaussian(name, temperature, seed=round(10 * temperature))  # with one seed, T would only scale the noise


@every_sampler
def test_gaussian_target_in_double_precision(name):
    check_gaussian(name, 0.5, chains=512, seed=2, dtype=torch.float64)


@every_sampler
def test_law_tends_to_the_posterior(name):
    """Ties the law of the recursion, which the z-scores use, to p(θ | data)^(1/T): the difference is of order lr."""
    for lr in (0.1, 0.01, 0.001):
        covariance, _ = replace(CASES[name], lr=lr).law(CORRELATED, 0.5, gradient_std=0.0)
        np.testing.assert_allclose(covariance[:2, :2], CORRELATED.posterior(0.5), rtol=2 * lr)


def test_law_in_closed_form():
    """Σ = T/N·A⁻¹(I − lr·A/2)⁻¹ for SGLD, T/N·A⁻¹(I − lr·A/(4−2α))⁻¹ for SGHMC."""
    posterior, curvature = CORRELATED.posterior(0.5), CORRELATED.curvature
    for name, divisor in (("sgld", 2), ("sghmc", 4 - 2 * 0.3)):
        closed = posterior @ np.linalg.inv(np.eye(2) - CASES[name].lr * curvature / divisor)
        np.testing.assert_allclose(CASES[name].law(CORRELATED, 0.5)[0][:2, :2], closed, rtol=1e-10)


@every_sampler
def test_zero_gradient_rows_diffuse_under_the_prior(name):
    """Without likelihood the law is the tempered prior."""
    empty = Gaussian(np.zeros((2, 2)), np.zeros(2), CORRELATED.num_data, CORRELATED.prior_var)
    run = run_chains(CASES[name], empty, temperature=0.5, chains=512, seed=3)
    assert_z(law_z(CASES[name], empty, run, 0.5))


def noisy(name):
    """(case, gradient noise τ): at T = ½ and G = 1 it adds half as much noise as the sampler injects."""
    case = CASES[name]
    tau = math.sqrt(0.5 * 2 * 0.3 * 0.5 / (case.lr * CORRELATED.num_data))
    return replace(case, steps=2000 if name == "santa" else 400), tau


@pytest.mark.parametrize("name", ["sgnht", "santa"])
def test_thermostat_absorbs_unknown_gradient_noise(name):
    case, tau = noisy(name)
    run = run_chains(case, CORRELATED, temperature=0.5, chains=1024, gradient_std=tau)
    assert_z(law_z(case, CORRELATED, run, 0.5, tau))
    covariance, friction = case.law(CORRELATED, 0.5, tau)
    assert friction.min() > 1.25 * case.injected  # there was something to absorb
    posterior = CORRELATED.posterior(0.5)  # right up to the spread of the frequencies, which lr makes small
    assert np.trace(np.linalg.solve(posterior, covariance[:2, :2])) / 2 == pytest.approx(1, abs=0.02)


def test_without_thermostat_gradient_noise_is_visibly_too_hot():
    """The power of the test above: same target, same noise, SGHMC."""
    case, tau = noisy("sghmc")
    run = run_chains(case, CORRELATED, temperature=0.5, chains=1024, gradient_std=tau)
    assert_z(law_z(case, CORRELATED, run, 0.5, tau))  # exactly as hot as the theory of τ says,
    assert law_z(case, CORRELATED, run, 0.5)["temperature θ"] > 12  # which is far from the temperature asked for


REGRESSION = {
    "sgld": {"lr": 0.02, "steps": 650},
    "psgld": {"lr": 0.02, "steps": 800},
    "sghmc": {"lr": 0.04, "steps": 250},
    "sgnht": {"lr": 0.04, "steps": 350},
    "santa": {"lr": 0.04, "steps": 1000},
}


@every_sampler
def test_bayesian_linear_regression(name):
    """y = Xw + N(0, s²), w ~ N(0, σ²): closed form, against full-batch gradients of the mean loss by autograd.

    No law of the recursion here, but the posterior itself: lr is so small that the discretisation widens variances
    by 1 % or less, a sixth of a standard error at 512 chains.
    """
    rows, noise_var, prior_var = 50, 1.5, 0.08
    generator = np.random.default_rng(5)
    x = generator.normal(size=(rows, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.4], [0.0, 0.0, 1.0]])
    y = x @ np.array([0.4, -0.3, 0.2]) + math.sqrt(noise_var) * generator.normal(size=rows)
    covariance = np.linalg.inv(x.T @ x / noise_var + np.eye(3) / prior_var)
    mean = covariance @ x.T @ y / noise_var
    inputs, targets = torch.tensor(x).float(), torch.tensor(y).float()[:, None]

    def gradient(theta):
        theta = theta.requires_grad_()
        loss = (inputs @ theta.T - targets).square().mean(0) / (2 * noise_var)
        return torch.autograd.grad(loss.sum(), theta)[0]

    case = replace(CASES[name], gain=(0.8, 1.0, 1.2), **REGRESSION[name])
    target = Gaussian(np.zeros((3, 3)), np.zeros(3), num_data=rows, prior_var=prior_var)
    run = run_chains(case, target, temperature=1.0, chains=512, gradient=gradient)
    assert_z(gaussian_z(run.theta, mean, covariance))


@pytest.mark.parametrize("temperature", [0.1, 1.0])
@pytest.mark.parametrize("name", ["sghmc", "sgnht"])
def test_first_momentum_has_the_temperature(name, temperature):
    check_first_momentum(name, temperature)


# ---------------------------------------------------------------- pSGLD on rows that are seldom visited


def visit_few_rows(prior_var, *, steps=1500, **settings):
    """1000 rows × 4; rows 0-9 are visited in turn, 10-19 only in the first ten steps, the others never."""
    table = parameter(1000, 4)
    sampler = PSGLD([table], lr=1e-3, num_data=5452, seed=0, prior_var=prior_var, **settings)
    table.grad = torch.zeros_like(table)
    for i in range(steps):
        table.grad.zero_()
        table.grad[i % 10] = 0.1
        if i < 10:
            table.grad[10 + i] = 0.1
        sampler.step()
    return table.detach()


def test_rows_without_gradient_reach_the_prior():
    """Under the ceiling Nσ a row relaxes by lr/σ per step: v ← (1−10⁻³)²·v + 2·10⁻³, which is 0.95 after 1500."""
    table = visit_few_rows(1.0)
    variance = 0.0
    for _ in range(1500):
        variance = (1 - 1e-3) ** 2 * variance + 2e-3
    assert variance == pytest.approx(0.95, abs=0.01)
    assert_z(normal_z(table[20:], variance))
    assert table.abs().max() < 10


def test_rows_without_gradient_walk_slowly_under_a_flat_prior():
    table = visit_few_rows(None)
    assert_z(normal_z(table[20:], 1500 * 2e-3))
    assert table.abs().max() < 20


def test_rows_without_gradient_explode_without_ceiling():
    """The mutant: the printed algorithm. It proves that the two tests above can fail."""
    assert not visit_few_rows(1.0, steps=40, ceiling=math.inf)[20:].abs().max() < 1e10
    assert not visit_few_rows(None, steps=40, ceiling=math.inf)[20:].var() < 100


@pytest.mark.parametrize("temperature", [0.0, 1e-9, 1e-4])
@pytest.mark.parametrize("name", ["psgld", "santa"])
def test_rows_without_gradient_stay_finite_when_cold(name, temperature):
    """A ceiling of Nσ/√T, as it once was, has no end as T → 0, and the pull of the prior alone then overshoots."""
    table = torch.nn.Parameter(torch.ones(8, 4))
    sampler = make(name, [table], lr=1e-3, num_data=5452, prior_var=1.0, temperature=temperature)
    for _ in range(50):
        table.grad = torch.zeros_like(table)
        sampler.step()
    assert table.abs().max() < 2


# ---------------------------------------------------------------- the same bits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@kernel_and_plain
@every_sampler
def test_same_bits_on_one_and_two_threads(name, fused, dtype):
    """100 003 elements, beyond the size from which work is split among threads; SGNHT sums over all of them.

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
    """Same seed same bits; another seed or another parameter of the same shape, uncorrelated noise."""
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


def through_files(state_dict):
    """As a checkpoint keeps it: named tensors here, JSON there, no pickle."""
    tensors = {f"{i}/{key}": t.clone() for i, entry in state_dict["state"].items() for key, t in entry.items()}
    state: dict[int, dict[str, torch.Tensor]] = {}
    for path, tensor in tensors.items():
        index, key = path.split("/")
        state.setdefault(int(index), {})[key] = tensor
    return {"state": state, "param_groups": json.loads(json.dumps(state_dict["param_groups"]))}


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
    fresh = make(name, resumed.parameters(), lr=1.0, num_data=1, seed=99)  # all of it is overwritten by the state
    fresh.load_state_dict(saved)
    train(resumed, fresh, steps=6, first=4)
    assert all(torch.equal(a, b) for a, b in zip(resumed.parameters(), whole.parameters(), strict=True))


@every_sampler
@kernel_and_plain
def test_a_prior_with_a_mean_is_a_prior_around_zero_of_the_difference(name, fused):
    """θ under N(μ, σ²) moves as δ = θ − μ under N(0, σ²), with the gradient at θ: at every step, for every sampler."""
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


# ---------------------------------------------------------------- as torch users expect


@every_sampler
def test_without_a_seed_noise_follows_torch_s_and_is_not_shared(name):
    def steps(count):
        thetas = [parameter(5) for _ in range(count)]
        for theta in thetas:
            sampler = make(name, [theta], lr=0.1, num_data=10, seed=None)
            for _ in range(3):
                theta.grad = torch.zeros(5)
                sampler.step()
        return [theta.detach() for theta in thetas]

    torch.manual_seed(3)
    one, other = steps(2)
    assert not torch.isclose(one, other).any()
    torch.manual_seed(3)
    assert torch.equal(steps(1)[0], one)


@every_sampler
def test_settings_of_torch_s_optimisers_are_not_swallowed(name):
    groups = [{"params": [parameter(2)]}, {"params": [parameter(3)], "weight_decay": 0.01}]
    with pytest.raises(ValueError, match=r"weight_decay must be left out or 0, got 0.01; .*prior_var"):
        make(name, groups, lr=0.1, num_data=10)
    groups[1] |= {"weight_decay": 0, "name": "head"}  # as libraries that hand in groups do
    make(name, groups, lr=0.1, num_data=10)


@every_sampler
def test_frozen_and_gradientless_parameters_are_left_alone(name):
    frozen = torch.nn.Parameter(torch.randn(3), requires_grad=False)
    unused, used = torch.nn.Parameter(torch.randn(3)), torch.nn.Parameter(torch.randn(3))
    before = [p.detach().clone() for p in (frozen, unused, used)]
    sampler = make(name, [frozen, unused, used], lr=0.1, num_data=10, prior_var=1.0)
    for _ in range(3):
        sampler.zero_grad()
        used.square().sum().backward()
        sampler.step()
    assert torch.equal(frozen, before[0])
    assert torch.equal(unused, before[1])
    assert not sampler.state[unused]
    assert not sampler.state[frozen]
    assert (used != before[2]).all()


@every_sampler
def test_groups_have_their_own_settings(name):
    """A cold flat group beside a warm one moves as it would alone, bit for bit; each prior pulls its own group."""
    alone, cold, warm = parameter(6), parameter(6), parameter(6)
    random_gradients(make(name, [alone], lr=0.1, num_data=10, temperature=0.0), 3)
    sampler = make(
        name, [{"params": [cold], "temperature": 0.0}, {"params": [warm], "prior_var": 0.5}], lr=0.1, num_data=10
    )
    for i in range(3):
        gradient = torch.randn(6, generator=torch.Generator().manual_seed(i))
        cold.grad, warm.grad = gradient.clone(), gradient.clone()
        sampler.step()
    assert torch.equal(cold, alone)
    assert (warm != cold).all()

    pulled = [torch.nn.Parameter(torch.ones(4)) for _ in range(3)]
    groups = [{"params": [p], "prior_var": v} for p, v in zip(pulled, (None, 4.0, 1.0), strict=True)]
    unit_gain = {"eps": 1.0} if CASES[name].preconditioned else {}  # G = 1 where there is no gradient
    sampler = make(name, groups, lr=0.1, num_data=10, temperature=0.0, **unit_gain)
    for p in pulled:
        p.grad = torch.zeros_like(p)
    sampler.step()
    assert torch.equal(pulled[0], torch.ones(4))
    torch.testing.assert_close(pulled[1], torch.full((4,), 1 - 0.1 / 40), rtol=1e-6, atol=0)
    torch.testing.assert_close(pulled[2], torch.full((4,), 1 - 0.1 / 10), rtol=1e-6, atol=0)


@every_sampler
def test_lr_schedulers_act(name):
    """LambdaLR with a schedule of ours equals setting the rate by hand; at rate 0 not even noise moves."""
    schedule = schedules.cosine_cyclical(4, floor=0.1)
    scheduled, by_hand = LanguageModel(), LanguageModel()
    sampler = make(name, scheduled.parameters(), lr=0.2, num_data=100)
    train(scheduled, sampler, steps=6, scheduler=LambdaLR(sampler, schedule))
    sampler = make(name, by_hand.parameters(), lr=0.2, num_data=100)
    for i in range(6):
        sampler.param_groups[0]["lr"] = 0.2 * schedule(i)
        train(by_hand, sampler, steps=1, first=i)
    assert all(torch.equal(a, b) for a, b in zip(scheduled.parameters(), by_hand.parameters(), strict=True))

    still = parameter(5)
    random_gradients(make(name, [still], lr=0.0, num_data=10), 3)
    assert not still.any()


@every_sampler
def test_closure_is_evaluated_with_gradients_and_returns_the_loss(name):
    theta = torch.nn.Parameter(torch.ones(3))
    sampler = make(name, [theta], lr=0.1, num_data=10, temperature=0.0)

    def closure():
        sampler.zero_grad()
        loss = theta.square().sum()
        loss.backward()
        return loss

    assert sampler.step(closure).item() == 3.0
    assert (theta < 1).all()
    assert sampler.step() is None


@every_sampler
def test_maximize_is_minimising_the_negative(name):
    up, down = parameter(5), parameter(5)
    settings = {"lr": 0.1, "num_data": 10, "prior_var": 1.0}
    samplers = make(name, [up], maximize=True, **settings), make(name, [down], **settings)
    for i in range(3):
        gradient = torch.randn(5, generator=torch.Generator().manual_seed(i))
        up.grad, down.grad = gradient, -gradient
        for sampler in samplers:
            sampler.step()
        assert torch.equal(up.grad, gradient)  # the user's gradient is not touched
    assert torch.equal(up, down)


@every_sampler
def test_tied_weights_count_once(name):
    """One parameter, one pull of the prior, one noise: as if a lone tensor got the summed gradient."""
    model = LanguageModel(tied=True)
    sampler = make(name, model.parameters(), lr=0.1, num_data=100, prior_var=1.0)
    assert sum(p is model.head.weight for group in sampler.param_groups for p in group["params"]) == 1
    lone = torch.nn.Parameter(model.embedding.weight.detach().clone())
    tokens = torch.randint(0, 30, (4, 7), generator=torch.Generator().manual_seed(0))
    model.loss(tokens).backward()
    lone.grad = model.embedding.weight.grad.clone()
    sampler.step()
    make(name, [lone], lr=0.1, num_data=100, prior_var=1.0).step()
    assert torch.equal(model.head.weight, lone)
    assert model.head.weight is model.embedding.weight


@every_sampler
def test_odd_shapes(name):
    """A scalar, an empty tensor and a transposed layout: the noise follows the logical order of elements."""
    scalar, empty, plain = parameter(), parameter(0, 3), parameter(70, 30)
    transposed = torch.nn.Parameter(torch.zeros(30, 70).T)
    random_gradients(make(name, [scalar, empty], lr=0.1, num_data=10), 2)
    assert scalar.isfinite()
    assert scalar != 0
    for theta in (plain, transposed):
        random_gradients(make(name, [theta], lr=0.1, num_data=10, prior_var=1.0), 3)
    torch.testing.assert_close(plain, transposed, rtol=1e-6, atol=1e-7)


def test_santa_cools_and_then_refines():
    """T·(t+1)^(−anneal) while exploring, then the optimiser: all chains meet at the mode, frictions stand still."""
    case = replace(CASES["santa"], steps=500, settings=CASES["santa"].settings | {"explore": 100, "anneal": 0.5})
    run = run_chains(case, CORRELATED, temperature=1.0, chains=64)
    np.testing.assert_allclose(run.theta, np.broadcast_to(CORRELATED.mean, (64, 2)), atol=1e-5)
    exploring = run_chains(replace(case, steps=98), CORRELATED, temperature=1.0, chains=64)
    assert exploring.theta.std() > 0.01
    refined = run_chains(replace(case, steps=600), CORRELATED, temperature=1.0, chains=64)
    assert torch.equal(run.friction, refined.friction)


@pytest.mark.parametrize("anneal", [0.0, 0.5])
def test_santa_anneals_the_noise(anneal):
    """The ninth step, without gradient: θ = √(2A·lr·T·9^(−anneal)·G/N)·ξ, with G at its ceiling, 1."""
    theta = parameter(64, 64)
    sampler = make("santa", [theta], lr=0.0, num_data=40, anneal=anneal, friction=0.2, ceiling=1.0)
    theta.grad = torch.zeros_like(theta)
    for _ in range(8):
        sampler.step()
    assert not theta.any()
    sampler.param_groups[0]["lr"] = 0.1
    sampler.step()
    assert_z(normal_z(theta, 2 * 0.2 * 0.1 * 9**-anneal / 40))


# ---------------------------------------------------------------- what is refused

BAD = [
    *(("sgld", "num_data", value) for value in (0, -1, math.nan)),
    ("sgld", "lr", -1.0), ("sgld", "lr", math.nan), ("sgld", "temperature", -1.0), ("sgld", "prior_var", 0.0),
    ("sgld", "prior_var", -1.0), ("sgld", "seed", -1),
    ("psgld", "beta", 1.0), ("psgld", "beta", -0.1), ("psgld", "eps", -1e-8), ("psgld", "preconditioner", "adam"),
    ("psgld", "ceiling", 0.0),
    ("sghmc", "friction", 0.0), ("sghmc", "friction", 1.5), ("sgnht", "friction", 0.0),
    ("sgnht", "thermostat_rate", -1.0),
    ("santa", "friction", 0.0), ("santa", "beta", 1.0), ("santa", "preconditioner", "adam"), ("santa", "anneal", -1.0),
    ("santa", "explore", -1), ("santa", "thermostat_rate", -1.0),
]


@pytest.mark.parametrize(("name", "setting", "value"), BAD)
def test_impossible_settings_are_refused(name, setting, value):
    """The message says what was expected, what came and what to do."""
    settings = {"lr": 0.1, "num_data": 10} | {setting: value}
    with pytest.raises(ValueError, match=rf"^{setting} must be .+, got '?{value}'?; .+"):
        make(name, [parameter(2)], **settings)


@every_sampler
def test_shared_settings_are_refused_by_every_sampler(name):
    for setting, value in (("num_data", 0), ("lr", -1.0), ("temperature", -1.0), ("prior_var", 0.0)):
        with pytest.raises(ValueError, match=rf"^{setting} must be .+, got {value}; .+"):
            make(name, [parameter(2)], **({"lr": 0.1, "num_data": 10} | {setting: value}))


@every_sampler
def test_a_refused_group_is_not_added(name):
    sampler = make(name, [parameter(2)], lr=0.1, num_data=10)
    with pytest.raises(ValueError, match="temperature must be"):
        sampler.add_param_group({"params": [parameter(2)], "temperature": -1.0})
    assert len(sampler.param_groups) == 1


@every_sampler
def test_other_dtypes_are_refused(name):
    for dtype in (torch.int64, torch.float16):
        with pytest.raises(ValueError, match=rf"^parameters must be float32 or float64, got {dtype}; .+"):
            make(name, [torch.zeros(2, dtype=dtype)], lr=0.1, num_data=10)


@pytest.mark.parametrize("name", ["sghmc", "sgnht", "santa"])
def test_sparse_gradients_are_refused_by_samplers_with_momentum(name):
    embedding = torch.nn.Embedding(4, 2, sparse=True)
    sampler = make(name, embedding.parameters(), lr=0.1, num_data=10)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match=r"expects dense gradients, got a sparse one; .+sparse=False"):
        sampler.step()


@every_sampler
def test_docstrings_run(name):
    result = doctest.testmod(sys.modules[SAMPLERS[name].__module__], extraglobs={"torch": torch})
    assert result.failed == 0
    assert result.attempted or name != "sgld"  # the one with an example


# ---------------------------------------------------------------- is the calibration true?


@pytest.mark.slow
@every_sampler
def test_z_scores_are_standard_normal(name):
    """100 seeds: each z-score of the Gaussian check against N(0, 1) by Kolmogorov-Smirnov, mean and variance.

    Santa's friction is left out: its standard error is conservative on purpose (see `law_z`).
    """
    seeds, case = 100, CASES[name]
    runs = [run_chains(case, CORRELATED, temperature=0.5, chains=512, seed=1000 + s) for s in range(seeds)]
    rows = [law_z(case, CORRELATED, run, 0.5) for run in runs]
    scores = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    if name == "santa":
        assert np.abs(scores.pop("friction")).max() < LIMIT
    for key, z in scores.items():
        assert stats.kstest(z, "norm").pvalue > 1e-4, key
        assert abs(z.mean()) * math.sqrt(seeds) < 4.5, key
        assert abs(z.var() - 1) * math.sqrt(seeds / 2) < 4.5, key
