"""Samples of compiled and wrapped models fit the plain ones, and theirs the others."""



import pytest
import torch
from torch import nn

import langevin
from langevin.store.weights import DamagedSample, load_weights, weights

# torch itself uses what it deprecates when it first compiles
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def compiled_inside():
    return nn.Sequential(torch.compile(nn.Linear(3, 4)), nn.BatchNorm1d(4), nn.Linear(4, 2))


WRAPPED = {
    "plain": network,
    "compiled": lambda: torch.compile(network()),
    "parallel": lambda: nn.DataParallel(network()),
    "compiled and parallel": lambda: nn.DataParallel(torch.compile(network())),
    "parallel and compiled": lambda: torch.compile(nn.DataParallel(network())),
    "one layer compiled": compiled_inside,
}


@pytest.mark.parametrize("reader", WRAPPED)
@pytest.mark.parametrize("writer", WRAPPED)
def test_a_store_of_one_fits_the_other(writer, reader, tmp_path):
    written, read = WRAPPED[writer](), WRAPPED[reader]()
    langevin.SampleStore(tmp_path).append(written, 1)
    langevin.SampleStore(tmp_path).read()[0].load_into(read)
    for one, other in zip(weights(written).values(), weights(read).values(), strict=True):
        assert torch.equal(one, other)


def test_an_average_and_an_ensemble_read_samples_of_a_compiled_model(tmp_path):
    store, plain, x = langevin.SampleStore(tmp_path), network().eval(), torch.randn(5, 3)
    store.append(torch.compile(plain), 1)
    expected, other = plain(x).detach().softmax(-1), network()
    torch.testing.assert_close(langevin.average(store, other, lambda m: m(x)).probabilities, expected)
    averaged = langevin.Ensemble(other, store).log_probs(x)
    torch.testing.assert_close(averaged.log_probs.exp(), expected)


class Named(nn.Module):
    """A model with a part of its own that is called module."""

    def __init__(self):
        super().__init__()
        self.module, self.head = nn.Linear(2, 2), nn.Linear(2, 2)


def test_a_part_that_is_called_module_is_no_wrapper():
    model, other = Named(), Named()
    load_weights(other, weights(model), "it")
    assert torch.equal(other.module.weight, model.module.weight)
    load_weights(nn.DataParallel(other), weights(model), "it")


def test_names_that_differ_by_more_than_wrappers_are_refused():
    tensors = weights(torch.compile(network()))
    tensors["_orig_mod.3.weight"] = tensors.pop("_orig_mod.2.weight")
    with pytest.raises(DamagedSample, match=r"2\.weight is absent there, \(2, 4\) in the model"):
        load_weights(network(), tensors, "it")


def test_two_that_would_get_one_name_are_refused():
    model = nn.Module()
    model.module, model.weight = nn.Linear(1, 1, bias=False), nn.Parameter(torch.ones(1, 1))
    with pytest.raises(DamagedSample, match="does not fit the model"):
        load_weights(nn.DataParallel(nn.Linear(1, 1, bias=False)), weights(model), "it")
