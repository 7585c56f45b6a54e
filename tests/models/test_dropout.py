"""Masks: constant in time where they should be, independent between rows, expectation kept, off at
evaluation."""

import pytest
import torch

from langevin.models.dropout import Dropout, WordDropout, keep_mask
from langevin.models.initial import initialise
from langevin.models.language_model import LanguageModel
from langevin.models.recurrent import CELLS, Recurrent, step, unroll

ROWS, TIME, UNITS = 400, 5, 50


def drop(kind, rate=0.3):
    torch.manual_seed(0)
    return Dropout(rate, kind).train()(torch.ones(ROWS, TIME, UNITS))


@pytest.mark.parametrize("kind", ["naive", "gal", "gaussian"])
def test_expectation_and_variance(kind):
    x = drop(kind).double()
    independent = ROWS * UNITS * (1 if kind == "gal" else TIME)
    spread = (0.3 / 0.7) ** 0.5
    assert abs(x.mean() - 1) < 5 * spread / independent**0.5
    assert abs(x.var() - spread**2) < 0.02


def test_gal_masks_are_constant_in_time_and_independent_between_rows():
    x = drop("gal")
    assert (x == x[:, :1]).all()
    rows = x[:, 0]
    agreement = (rows[:-1] == rows[1:]).double().mean()
    assert abs(agreement - (0.7**2 + 0.3**2)) < 5 * (0.58 * 0.42 / rows[1:].numel()) ** 0.5


def test_naive_masks_change_in_time():
    x = drop("naive")
    assert not (x == x[:, :1]).all()


def test_word_dropout_drops_types():
    torch.manual_seed(0)
    tokens = torch.randint(20, (200, 30))
    x = WordDropout(0.4).train()(torch.ones(200, 30, 3), tokens, 20)
    assert (x == x[..., :1]).all()
    for row in range(5):
        for kind in tokens[row].unique():
            assert x[row][tokens[row] == kind].unique().numel() == 1
    assert abs((x == 0).double().mean() - 0.4) < 0.03


@pytest.mark.parametrize("kind", ["naive", "gal", "gaussian"])
@pytest.mark.parametrize("cell", list(CELLS))
def test_off_at_evaluation(kind, cell):
    torch.manual_seed(0)
    plain = LanguageModel(11, cell=cell, embed=6, hidden=6, layers=2)
    dropping = LanguageModel(11, cell=cell, embed=6, hidden=6, layers=2, dropout=0.5, dropout_kind=kind)
    dropping.load_state_dict(plain.state_dict())
    tokens = torch.randint(11, (3, 8))
    assert torch.equal(dropping.eval()(tokens)[0], plain.eval()(tokens)[0])
    assert not torch.equal(dropping.train()(tokens)[0], plain(tokens)[0])


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("bidirectional", [False, True])
def test_unrolled_layer_equals_the_fused_kernel_when_nothing_is_dropped(cell, bidirectional):
    stack = Recurrent(cell, 5, 7, 2, bidirectional=bidirectional, dropout=0.5, dropout_kind="gal")
    initialise(stack, "uniform", 0.5, 1.0, seed=0)
    x = torch.randn(4, 6, 5)
    expected, carry = stack.eval()(x)
    stack.train()
    stack.between.rate, stack.recurrent_rate = 0.0, 1e-12  # the slow path, with a mask of ones
    got, after = stack(x)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(after, carry, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_gal_recurrent_mask_is_the_same_at_every_step():
    torch.manual_seed(0)
    u = torch.eye(6)
    zero = torch.zeros(3, 6)
    torch.manual_seed(1)
    mask = keep_mask(zero, 0.5)
    torch.manual_seed(1)
    outputs, _ = unroll("rnn", torch.full((3, 4, 6), 0.1), (zero,), [torch.eye(6), u, zero[0], zero[0]], 0.5)
    h = zero
    for t in range(4):
        (h,) = step("rnn", torch.full((3, 6), 0.1), (h * mask) @ u, (h,))
        torch.testing.assert_close(outputs[:, t], h)


def test_tied_weights_are_one_parameter():
    model = LanguageModel(11, cell="lstm", embed=6, hidden=6, layers=1, tied=True)
    assert model.output.weight is model.embedding.weight
    assert sum(p.numel() for p in model.parameters() if p.shape == (11, 6)) == 66
