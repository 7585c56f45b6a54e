"""The running mean of the weights: its formula, a sample of it, exact on resume."""

import copy
import doctest

import pytest
import torch
from torch import nn

from langevin.errors import LangevinError
from langevin.samplers import PSGLD
from langevin.store.samples import SampleStore
from langevin.training import running_mean
from langevin.training.running_mean import RunningMean


def moved(model: nn.Module, step: int) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.Generator().manual_seed(step)
            parameter.add_(torch.randn(parameter.shape, generator=noise))


def test_it_is_the_plain_mean_at_first_and_forgets_later():
    model = nn.Linear(3, 2)
    mean = RunningMean(model, decay=0.9)
    seen, expected = [], torch.empty(0)
    for step in range(30):
        moved(model, step)
        mean.update()
        weight = model.weight.detach().double().clone()
        seen.append(weight)
        expected = torch.stack(seen).mean(0) if step < 10 else 0.9 * expected + 0.1 * weight
        assert torch.allclose(mean.module.weight.double(), expected, atol=1e-5)
    assert not mean.module.weight.requires_grad


def test_it_is_a_model_and_a_sample(tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.9))
    mean = RunningMean(model)
    for step in range(5):
        moved(model, step)
        model(torch.randn(8, 2))
        mean.update()
    x = torch.randn(4, 2)
    assert torch.equal(mean.train()(x), mean(x))  # no dropout, no statistics of the batch
    store = SampleStore(tmp_path)
    store.append(mean, 5)
    fresh = copy.deepcopy(model).eval()
    store.read()[0].load_into(fresh)
    assert torch.equal(fresh(x), mean(x))
    assert not torch.equal(model.eval()(x), mean(x))


def trained(steps: int, state: dict | None = None) -> tuple[nn.Module, PSGLD, RunningMean]:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    mean, sampler = RunningMean(model), PSGLD(model.parameters(), 1e-2, num_data=10, seed=1)
    if state:
        model.load_state_dict(state["model"])
        sampler.load_state_dict(state["sampler"])
        mean.load_state_dict(state["mean"])
    for _ in range(steps):
        sampler.zero_grad()
        model(torch.ones(3, 4)).square().mean().backward()
        sampler.step()
        mean.update()
    return model, sampler, mean


def test_what_is_resumed_goes_on_with_the_same_bits():
    _, _, whole = trained(150)
    model, sampler, mean = trained(70)
    state = {"model": model.state_dict(), "sampler": sampler.state_dict(),
             "mean": mean.state_dict()}
    _, _, resumed = trained(80, copy.deepcopy(state))
    assert resumed.steps == whole.steps == 150
    assert torch.equal(resumed.module.weight, whole.module.weight)


def test_it_says_what_memory_it_takes():
    assert RunningMean(nn.Linear(10, 5)).bytes == 4 * (50 + 5)


@pytest.mark.parametrize("decay", [1.0, -0.1])
def test_impossible_lengths_are_refused(decay):
    with pytest.raises(LangevinError, match=r"decay must be in \[0, 1\), got .+; \.99 is"):
        RunningMean(nn.Linear(1, 1), decay)


def test_the_docstring_runs():
    result = doctest.testmod(running_mean)
    assert (result.attempted, result.failed) == (4, 0)
