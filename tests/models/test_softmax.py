"""The compiled softmax loss against torch: values, gradients, what is no number, threads, and where
it steps aside."""

import math

import pytest
import torch
from torch.nn import functional as F

from langevin.models import softmax
from langevin.models.softmax import cross_entropy

ROWS, CLASSES = 37, 2003


def example(dtype=torch.float32, spread=3.0):
    generator = torch.Generator().manual_seed(0)
    logits = (torch.randn(ROWS, CLASSES, generator=generator) * spread).to(dtype).requires_grad_()
    return logits, torch.randint(CLASSES, (ROWS,), generator=generator)


@pytest.fixture(autouse=True)
def small_counts(monkeypatch):
    monkeypatch.setattr(softmax, "WORTH", 0)


def gradient(loss, logits):
    (grad,) = torch.autograd.grad(loss, logits)
    return grad.double()


@pytest.mark.parametrize("spread", [0.0, 3.0, 60.0])
def test_loss_and_gradient_are_those_of_torch(spread):
    logits, targets = example(spread=spread)
    exact = logits.detach().double().requires_grad_()
    expected, got = F.cross_entropy(exact, targets) * 1.5, cross_entropy(logits, targets, 1.5)
    assert abs(got.item() - expected.item()) < 3e-6 * max(1.0, expected.item())
    difference = gradient(got, logits) - gradient(expected, exact)
    assert difference.abs().max() < 2e-6 * 1.5 / ROWS * max(1.0, spread)


def test_every_probability_is_right_to_rounding():
    logits, targets = example()
    exact = logits.detach().double().requires_grad_()
    wanted = gradient(F.cross_entropy(exact, targets), exact)
    have = gradient(cross_entropy(logits, targets), logits)
    others = torch.arange(CLASSES) != targets[:, None]  # of the target it is a difference
    assert ((have - wanted).abs() < 4e-6 * wanted)[others].all()


def test_bfloat16_is_read_exactly_and_its_gradient_rounded_once():
    logits, targets = example(torch.bfloat16)
    exact = logits.detach().double().requires_grad_()
    expected, got = F.cross_entropy(exact, targets), cross_entropy(logits, targets)
    assert got.dtype == torch.float32
    assert abs(got.item() - expected.item()) < 1e-5
    wanted, have = gradient(expected, exact), gradient(got, logits)
    # half a unit of its eight bits
    assert ((have - wanted).abs() <= wanted.abs() * (2**-8 * 1.001) + 1e-12).all()
    assert (have != wanted).any()


def test_gradient_follows_the_chain_rule():
    logits, targets = example()
    torch.testing.assert_close(gradient(cross_entropy(logits, targets) * 7, logits),
                               gradient(cross_entropy(logits, targets), logits) * 7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
# processors make NaN with a sign
@pytest.mark.parametrize("bad", [math.nan, math.copysign(math.nan, -1), math.inf])
@pytest.mark.parametrize("place", [0, CLASSES - 1])
def test_what_is_no_number_is_not_hidden(dtype, bad, place):
    logits, targets = example(dtype)
    with torch.no_grad():
        logits[5, place] = bad
    targets[5] = 7
    assert not cross_entropy(logits, targets).isfinite()


def test_an_impossible_class_gets_no_gradient():
    logits, targets = example()
    with torch.no_grad():
        logits[:, 11] = -torch.inf
    targets[targets == 11] = 12
    loss = cross_entropy(logits, targets)
    assert loss.isfinite()
    assert gradient(loss, logits)[:, 11].abs().max() < 1e-30


def test_same_bits_on_one_and_two_threads():
    logits, targets = example()
    before, made = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            loss = cross_entropy(logits, targets)
            made.append((loss.item(), gradient(loss, logits)))
    finally:
        torch.set_num_threads(before)
    assert made[0][0] == made[1][0]
    assert torch.equal(made[0][1], made[1][1])


def test_float64_small_and_strided_logits():
    logits, targets = example(torch.float64)
    assert cross_entropy(logits, targets).dtype == torch.float64  # torch's own
    logits, targets = example()
    turned = logits.detach().t().contiguous().t().requires_grad_()
    assert not turned.is_contiguous()
    torch.testing.assert_close(gradient(cross_entropy(turned, targets), turned),
                               gradient(cross_entropy(logits, targets), logits))


def test_a_class_that_does_not_exist_is_refused():
    logits, targets = example()
    targets[3] = CLASSES
    with pytest.raises(IndexError, match=f"expected classes from 0 to {CLASSES - 1}, got {CLASSES}"):
        cross_entropy(logits, targets)
