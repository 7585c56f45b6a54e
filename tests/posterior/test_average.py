"""Probabilities are averaged: not logits, not log-probabilities, not losses."""

import math

import pytest
import torch
from torch import nn

from langevin import SGLD, Ensemble, LangevinError, SampleStore, average, average_values
from langevin.posterior import streaming
from langevin.posterior.average import LogMean


@pytest.fixture
def store(tmp_path):
    """Two samples of a one-input model whose logits are (0, 0) and (0, log 9): p(class 1) is 0.5
    and 0.9."""
    model, store = nn.Linear(1, 2, bias=False), SampleStore(tmp_path)
    for step, logit in ((1, 0.0), (2, math.log(9.0))):
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[0.0], [logit]]))
        store.append(model, step)
    return store


def check_average(store):
    result = average(store, nn.Linear(1, 2, bias=False), lambda m: m(torch.ones(1, 1)))
    torch.testing.assert_close(result.probabilities, torch.tensor([[0.3, 0.7]]))
    torch.testing.assert_close(result.std, torch.full((1, 2), 0.4 / math.sqrt(2)))
    assert result.samples == 2


def test_average_of_probabilities_and_spread(store):
    check_average(store)


def test_averaging_logits_would_fail(store, monkeypatch):
    """The planted bug: a mean of logits gives p = 0.75 where the mean of probabilities is 0.7."""
    monkeypatch.setattr(streaming.torch, "softmax", lambda logits, dim: logits)
    with pytest.raises((AssertionError, LangevinError)):
        check_average(store)


def test_entropy_and_mutual_information_of_the_two(store):
    """H[.7] = .6109, mean of H[.5] and H[.9] = .5091, in nats; one number for each item."""
    def h(p):
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    model = nn.Linear(1, 2, bias=False)
    result = average(store, model, lambda m: m(torch.ones(3, 4, 1)))
    assert result.probabilities.shape == result.std.shape == (3, 4, 2)
    assert result.probabilities.dtype == torch.float32
    information = h(0.7) - (h(0.5) + h(0.9)) / 2
    torch.testing.assert_close(result.entropy, torch.full((3, 4), h(0.7)))
    torch.testing.assert_close(result.mutual_information, torch.full((3, 4), information))


def test_a_path_will_do(store):
    check_average(store.folder)
    check_average(str(store.folder))


@pytest.mark.parametrize(("predict", "message"), [
    (lambda m: m(torch.ones(5, 1))[:, 1:], r"got \(5, 1\); make one logit"),
    (lambda m: m(torch.ones(5, 1))[:, 1], r"got \(5,\); make one logit"),
    (lambda m: m(torch.ones(5, 1)).softmax(-1), "got probabilities, .*return their logarithm"),
    (lambda m: (m(torch.ones(5, 1)), None), "expected a tensor of logits, got tuple"),
])
def test_what_is_no_logits_of_classes_is_refused(store, predict, message):
    with pytest.raises(LangevinError, match=message):
        average(store, nn.Linear(1, 2, bias=False), predict)


@pytest.mark.parametrize("model", [nn.Linear(4, 1), nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))])
def test_an_ensemble_refuses_a_single_logit(model):
    with pytest.raises(LangevinError, match=r"got \(3(, 1|,)\); make one logit z of two classes a pair"):
        Ensemble(model, [model, model]).log_probs(torch.ones(3, 4))


def test_log_mean_differs_from_mean_of_logs():
    mean = LogMean()
    for p in (0.5, 0.9):
        mean.add(torch.log(torch.tensor([p])))
    assert math.isclose(float(mean.value().exp()), 0.7, rel_tol=1e-6)
    assert abs(math.sqrt(0.5 * 0.9) - 0.7) > 0.02  # what averaging log-probabilities would give


def test_log_mean_survives_tiny_probabilities():
    mean = LogMean()
    mean.add(torch.tensor([-2000.0]))
    mean.add(torch.tensor([-1000.0]))
    assert math.isclose(float(mean.value()), -1000 - math.log(2), rel_tol=1e-6)


def test_one_sample_equals_the_plain_model(tmp_path):
    model, store = nn.Linear(3, 4), SampleStore(tmp_path)
    store.append(model, 1)
    x = torch.randn(5, 3)
    result = average(store, nn.Linear(3, 4), lambda m: m(x))
    torch.testing.assert_close(result.probabilities, torch.softmax(model(x), -1), rtol=1e-6, atol=1e-7)
    assert not result.std.any()
    assert not result.mutual_information.any()
    mean = LogMean()
    mean.add(x)
    assert torch.equal(mean.value(), x)


def test_the_model_gets_its_weights_and_mode_back(store):
    model = nn.Linear(1, 2, bias=False).train()
    before = model.weight.detach().clone()
    average(store, model, lambda m: m(torch.ones(1, 1)))
    assert torch.equal(model.weight, before)
    assert model.training


def test_an_attached_sampler_keeps_what_it_owes(tmp_path):
    """Reading a sample neither adds the noise that the chain owes to it nor takes it from the
    chain."""
    torch.manual_seed(0)
    model = nn.Embedding(6, 2, sparse=True)
    sampler = SGLD(model.parameters(), lr=0.1, num_data=10, prior_var=1.0)
    sampler.attach(model)
    store = SampleStore(tmp_path)
    model(torch.tensor([0])).sum().backward()
    sampler.step()
    sampler.catch_up_all()
    store.append(model, 1)
    kept = model.weight.detach().clone()
    sampler.step()
    result = average(store, model, lambda m: m(torch.arange(6)))
    torch.testing.assert_close(result.probabilities, kept.softmax(-1))
    owed = sampler.late[model.weight].seen.clone()
    assert (owed < owed.max()).any()  # the rows outside the batch
    sampler.catch_up_all()
    assert not torch.isclose(model.weight[1:], kept[1:]).any()


def test_a_selection_of_samples_can_be_averaged(store):
    result = average(store.select("backward", 1), nn.Linear(1, 2, bias=False), lambda m: m(torch.ones(1, 1)))
    torch.testing.assert_close(result.probabilities[0, 1], torch.tensor(0.9))


def test_nothing_to_average(tmp_path):
    with pytest.raises(LangevinError, match="at least one sample"):
        average([], nn.Linear(1, 2), lambda m: m(torch.ones(1, 1)))
    with pytest.raises(LangevinError, match="at least one sample"):
        LogMean().value()


class Gaussian(nn.Module):
    """y = θ·x, with a variance of its own for each item."""

    def __init__(self, theta, noise):
        super().__init__()
        self.theta, self.noise = nn.Parameter(theta), nn.Parameter(torch.tensor(noise))

    def forward(self, x):
        mean = x @ self.theta
        return mean, self.noise.expand_as(mean)


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    """400 exact draws of a Bayesian linear regression, and its predictive law at new inputs.

    y = θ·x + ε, ε ~ N(0, s²), θ ~ N(0, 1): θ | y ~ N(m, C), C⁻¹ = XᵀX/s² + 1, m = C·Xᵀy/s², and
    y* ~ N(m·x*, x*ᵀCx* + s²).
    """
    generator, noise = torch.Generator().manual_seed(0), 0.25
    x = torch.randn(12, 3, generator=generator)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + noise**0.5 * torch.randn(12, generator=generator)
    cov = torch.linalg.inv(x.T @ x / noise + torch.eye(3))
    center, root = cov @ x.T @ y / noise, torch.linalg.cholesky(cov)
    new = torch.randn(5, 3, generator=generator)
    store = SampleStore(tmp_path_factory.mktemp("regression"))
    draws = [center + root @ torch.randn(3, generator=generator) for _ in range(400)]
    for step, theta in enumerate(draws, 1):
        store.append(Gaussian(theta, noise), step)
    between = (new @ cov * new).sum(-1)
    return store, new, draws, (new @ center, between, noise)


def test_values_have_the_predictive_law_of_a_linear_regression(regression):
    """Mean and variance stray by their own errors: √(v/S) and v·√(2/S), here within five of
    them."""
    store, new, _, (mean, between, noise) = regression
    result = average_values(store, Gaussian(torch.zeros(3), 1.0), lambda m: m(new))
    assert result.samples == 400
    assert ((result.mean - mean).abs() < 5 * (between / 400).sqrt()).all()
    assert ((result.between - between).abs() < 5 * between * math.sqrt(2 / 400)).all()
    torch.testing.assert_close(result.within, torch.full((5,), noise))
    torch.testing.assert_close(result.variance, result.within + result.between)
    torch.testing.assert_close(result.std, result.variance.sqrt())


def test_values_without_a_variance_vary_between_the_samples_alone(regression):
    store, new, draws, _ = regression
    result = average_values(store, Gaussian(torch.zeros(3), 1.0), lambda m: m(new)[0])
    each = torch.stack(draws) @ new.T
    torch.testing.assert_close(result.mean, each.mean(0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(result.between, each.var(0), rtol=1e-4, atol=1e-6)
    assert result.within is None
    assert torch.equal(result.variance, result.between)
    alone = average_values(store.select("backward", 1), Gaussian(torch.zeros(3), 1.0), lambda m: m(new)[0])
    assert not alone.between.any()
    assert not result.mean.requires_grad


def test_values_that_are_none_are_refused(regression):
    store, new, _, _ = regression
    model = Gaussian(torch.zeros(3), 1.0)
    with pytest.raises(LangevinError, match=r"a pair \(mean, variance\) of tensors, got list"):
        average_values(store, model, lambda m: m(new)[0].tolist())
    with pytest.raises(LangevinError, match="return its exp"):
        average_values(store, model, lambda m: (m(new)[0], -m(new)[1]))
    with pytest.raises(LangevinError, match="at least one sample"):
        average_values([], model, lambda m: m(new))
    with pytest.raises(LangevinError, match=r"averaged by langevin\.average_values"):
        average(store, model, lambda m: m(new)[0])
