"""What every sampler refuses: settings, groups, states, types."""

import doctest
import math
import sys

import pytest
import torch

from langevin.samplers import SAMPLERS
from tests.samplers.targets import (
    every_sampler,
    make,
    parameter,
)


BAD = [
    *(("sgld", "num_data", value) for value in (0, -1, math.nan)),
    ("sgld", "lr", -1.0), ("sgld", "lr", math.nan), ("sgld", "temperature", -1.0), ("sgld", "prior_var", 0.0),
    ("sgld", "prior_var", -1.0), ("sgld", "seed", -1), ("sgld", "seed", 1.5), ("sgld", "seed", "a"),
    *(("sgld", setting, value) for setting in ("num_data", "lr", "temperature") for value in (math.inf, None, "1")),
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
def test_a_misspelt_setting_of_a_group_is_refused(name):
    with pytest.raises(ValueError, match=r"^temprature must be a setting of this sampler, got 0.1; .* temperature\?"):
        make(name, [{"params": [parameter(2)], "temprature": 0.1}], lr=0.1, num_data=10)


@every_sampler
def test_the_state_of_another_optimiser_is_refused_before_anything_changes(name):
    theta = parameter(2)
    sampler = make(name, [theta], lr=0.1, num_data=10, temperature=0.3)
    with pytest.raises(ValueError, match=r"^state_dict must be of a \w+, got one without .*num_data"):
        sampler.load_state_dict(torch.optim.RMSprop([theta], lr=0.5).state_dict())
    assert (sampler.param_groups[0]["lr"], sampler.param_groups[0]["temperature"]) == (0.1, 0.3)
    others = ["sgld", "psgld", "sghmc", "sgnht", "santa"]
    others.remove(name)
    for other in others:
        with pytest.raises(ValueError, match=r"got one with(out)? .*(friction|preconditioner|thermostat_rate)"):
            sampler.load_state_dict(make(other, [theta], lr=0.1, num_data=10).state_dict())


def test_a_group_that_fails_by_its_type_is_not_added_either():
    sampler = make("psgld", [parameter(2)], lr=0.1, num_data=10)
    with pytest.raises(TypeError):
        sampler.add_param_group({"params": [parameter(2)], "beta": "0.9"})
    assert len(sampler.param_groups) == 1


@every_sampler
def test_a_refused_group_is_not_added(name):
    sampler = make(name, [parameter(2)], lr=0.1, num_data=10)
    with pytest.raises(ValueError, match="temperature must be"):
        sampler.add_param_group({"params": [parameter(2)], "temperature": -1.0})
    with pytest.raises(ValueError, match="seed must be"):
        sampler.add_param_group({"params": [parameter(2)], "seed": "a"})
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
