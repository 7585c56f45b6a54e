"""What is read out, by hand; what stands beyond a row never counts."""

import torch

from langevin.models.readout import READOUTS, Readout

LENGTHS = torch.tensor([3, 1, 0])


def parts():
    generator = torch.Generator().manual_seed(0)
    states = torch.rand(3, 4, 6, generator=generator) * 2 - 1
    return states, torch.rand(2, 3, 3, generator=generator), torch.rand(3, 4, 5)


def test_by_hand():
    states, last, inputs = parts()
    found = Readout(["max", "last", "mean", "input"], 6, 5)(states, last, inputs, LENGTHS)
    assert found.shape == (3, 23)
    greatest, final, mean, into = found[0].split([6, 6, 6, 5])
    torch.testing.assert_close(greatest, states[0, :3].amax(0))
    torch.testing.assert_close(final, torch.cat([last[0, 0], last[1, 0]]))
    torch.testing.assert_close(mean, states[0, :3].mean(0))
    torch.testing.assert_close(into, inputs[0, :3].mean(0))


def test_attention_is_a_mean_by_weights_that_are_learnt():
    states, last, inputs = parts()
    readout = Readout(["attention"], 6, 5)
    share = readout.attention(states[0, :3])[:, 0].softmax(0)
    found = readout(states, last, inputs, LENGTHS)
    torch.testing.assert_close(found[0], share @ states[0, :3])
    torch.testing.assert_close(found[1], states[1, 0])
    assert readout.attention.weight.requires_grad


def test_padding_never_counts_and_an_empty_row_has_finite_gradients():
    states, last, inputs = parts()
    readout = Readout(READOUTS, 6, 5)
    beyond = torch.arange(4) >= LENGTHS[:, None]
    filled = torch.where(beyond[..., None], torch.ones(()), states).requires_grad_()
    other = torch.where(beyond[..., None], torch.ones(()), inputs)
    found = readout(filled, last, other, LENGTHS)
    assert found[:2].equal(readout(states, last, inputs, LENGTHS)[:2])
    found.sum().backward()
    assert filled.grad.isfinite().all()
