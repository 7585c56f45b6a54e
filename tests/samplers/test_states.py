"""The state of every sampler: loaded twice, copied, pickled, of an older version."""

import copy
import pickle

import pytest
import torch

from tests.samplers.targets import (
    every_sampler,
    make,
    parameter,
)
from tests.samplers.training import random_gradients


def loaded_twice(sampler, saved):
    for _ in range(2):
        sampler.load_state_dict(saved)
    return sampler


def pickled(sampler, saved):
    return loaded_twice(pickle.loads(pickle.dumps(sampler)), saved)


def deep_copied(sampler, saved):
    return loaded_twice(copy.deepcopy(sampler), saved)


@every_sampler
@pytest.mark.parametrize("how", [loaded_twice, deep_copied, pickled])
def test_a_state_can_be_loaded_again_and_into_copies(name, how):
    """torch adds a default of its own when it first loads; what was loaded goes on with the same
    bits."""
    whole, settings = parameter(6), {"lr": 0.1, "num_data": 10, "prior_var": 1.0}
    sampler = make(name, [whole], **settings)
    random_gradients(sampler, 3)
    saved, start = copy.deepcopy(sampler.state_dict()), whole.detach().clone()
    random_gradients(sampler, 3, first=3)
    copied = how(sampler, saved)
    [theta] = copied.param_groups[0]["params"]
    assert (theta is whole) == (how is loaded_twice)
    end = whole.detach().clone()
    theta.data.copy_(start)
    random_gradients(copied, 3, first=3)
    assert torch.equal(theta, end)
    assert copied.state_dict()["param_groups"][0].keys() == saved["param_groups"][0].keys()


@every_sampler
def test_a_state_of_before_momentum_was_noted_is_read(name):
    theta = parameter(6)
    sampler = make(name, [theta], lr=0.1, num_data=10)
    random_gradients(sampler, 1)
    saved = sampler.state_dict()
    del saved["param_groups"][0]["momentum"]
    saved["param_groups"][0]["maximize"] = False
    sampler.load_state_dict(saved)
    random_gradients(sampler, 1)
    saved["param_groups"][0]["maximize"] = True
    with pytest.raises(ValueError, match=r"^maximize must be left out or 0, got True; negate the loss"):
        sampler.load_state_dict(saved)
