"""step → factor, by hand-worked values, and under torch's own scheduler."""

import doctest
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from langevin.samplers import SGLD, schedules
from langevin.samplers.schedules import constant, cosine_cyclical, plateau, sampling_places, step_decay


def test_constant():
    assert [constant()(step) for step in (0, 1, 10**6)] == [1.0, 1.0, 1.0]


def test_step_decay():
    """Zaremba's small recipe: full rate for four epochs, halved at each epoch from then on."""
    factor = step_decay(after=4, every=1, factor=0.5)
    assert [factor(step) for step in range(8)] == [1, 1, 1, 1, 0.5, 0.25, 0.125, 0.0625]
    slower = step_decay(after=3, every=2, factor=0.1)
    assert [slower(step) for step in (2, 3, 4, 5)] == pytest.approx([1, 0.1, 0.1, 0.01])
    assert step_decay(after=0, every=5, factor=1.0)(100) == 1


def test_cosine_cyclical():
    """½(cos(π·(t mod M)/M) + 1): starts at 1, half way down at half the cycle, back at 1 in the
    next."""
    factor = cosine_cyclical(cycle=4)
    half = math.sqrt(0.5) / 2
    assert [factor(step) for step in range(5)] == pytest.approx([1, 0.5 + half, 0.5, 0.5 - half, 1])
    floored = cosine_cyclical(cycle=4, floor=0.2)
    assert [floored(step) for step in (0, 2, 4)] == pytest.approx([1, 0.6, 1])
    assert cosine_cyclical(cycle=1)(7) == 1


def test_plateau():
    """The full rate for half of the steps, then down to .3 of it, and no further."""
    factor = plateau(total=20)
    assert [factor(step) for step in (0, 5, 10)] == [1, 1, 1]
    assert [factor(step) for step in (15, 20, 25)] == pytest.approx([0.65, 0.3, 0.3])
    assert plateau(10, hold=0, floor=0)(5) == pytest.approx(0.5)


def test_samples_of_a_plateau_are_closer_where_the_rate_is_low():
    assert sampling_places(2000) == (1000, 1200, 1400, 1600, 1700, 1800, 1900, 2000)
    assert sampling_places(3) == (2, 3)
    assert sampling_places(1) == (1,)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**7), st.integers(1, 10**4), st.floats(0, 1), st.floats(1e-3, 1))
def test_factors_stay_between_zero_and_one(step, period, floor, decay):
    assert 0 <= step_decay(period, period, decay)(step) <= 1
    assert floor - 1e-12 <= cosine_cyclical(period, floor)(step) <= 1


@pytest.mark.parametrize(
    ("factory", "arguments", "name"),
    [
        (step_decay, (0, 0, 0.5), "every"), (step_decay, (0, 1, 0.0), "factor"), (step_decay, (0, 1, 1.5), "factor"),
        (cosine_cyclical, (0,), "cycle"),
        (plateau, (0,), "total"), (plateau, (9, 1.0), "hold"), (plateau, (9, 0.5, -1.0), "floor"),
        (cosine_cyclical, (4, -0.1), "floor"), (cosine_cyclical, (4, 1.1), "floor"),
    ],
)
def test_impossible_settings_are_refused(factory, arguments, name):
    with pytest.raises(ValueError, match=rf"^{name} must be .+, got .+; .+"):
        factory(*arguments)


@pytest.mark.parametrize("schedule", [constant(), step_decay(2, 2, 0.5), cosine_cyclical(3), plateau(6)])
def test_under_lambda_lr(schedule):
    theta = torch.nn.Parameter(torch.zeros(3))
    theta.grad = torch.ones(3)
    sampler = SGLD([theta], lr=0.5, num_data=10, temperature=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(sampler, schedule)
    travelled = 0.0
    for step in range(7):
        assert sampler.param_groups[0]["lr"] == 0.5 * schedule(step)
        travelled += 0.5 * schedule(step)
        sampler.step()
        scheduler.step()
    torch.testing.assert_close(theta.detach(), torch.full((3,), -travelled))


def test_the_docstring_runs():
    result = doctest.testmod(schedules)
    assert result.attempted == 3
    assert result.failed == 0
