from dataclasses import replace

import pytest
import torch
from torch import nn

from langevin.errors import LangevinError
from langevin.posterior.swag import weight_average
from langevin.store.samples import SampleStore
from langevin.store.weights import load_weights


class Counted(nn.Module):
    """Two weights, and a buffer that is no floating-point number."""

    def __init__(self, values, count):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(values))
        self.register_buffer("count", torch.tensor(count))


@pytest.fixture
def samples(tmp_path):
    store = SampleStore(tmp_path / "samples")
    for step, values in enumerate(([1.0, 4.0], [2.0, 5.0], [6.0, -3.0]), 1):
        store.append(Counted(values, step), step)
    return store.read()


def test_mean_of_three_samples(samples):
    model = Counted([0.0, 0.0], 0)
    load_weights(model, weight_average(samples), "the mean")
    assert model.theta.tolist() == [3.0, 2.0]
    assert int(model.count) == 3


def test_one_sample_is_itself(samples):
    mean = weight_average(samples[1:2])
    assert all(torch.equal(mean[name], tensor) for name, tensor in samples[1].load().items())


def test_what_cannot_be_averaged_is_refused(samples, tmp_path):
    with pytest.raises(LangevinError, match="at least one sample"):
        weight_average([])
    with pytest.raises(LangevinError, match="2 chains"):
        weight_average([samples[0], replace(samples[1], chain=1)])
    other = SampleStore(tmp_path / "other").append(Counted([1.0, 2.0, 3.0], 0), 1)
    with pytest.raises(LangevinError, match="one shape"):
        weight_average([*samples, other])
