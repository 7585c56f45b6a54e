"""Every score worked out by hand on a few items, and against scikit-learn on many."""

import math

import pytest
import torch
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from langevin import LangevinError
from langevin.posterior.calibration import (
    accuracy,
    auroc,
    brier,
    calibration_metrics,
    ece,
    nll,
    reliability,
    top_label,
)

P = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]], dtype=torch.float64)
Y = torch.tensor([0, 2, 2])


def many(items=500, classes=4, seed=1):
    g = torch.Generator().manual_seed(seed)
    p = torch.softmax(2 * torch.randn(items, classes, generator=g, dtype=torch.float64), -1)
    return p, torch.multinomial(p, 1, generator=g)[:, 0]


def test_nll_by_hand():
    assert nll(P.log(), Y) == pytest.approx(-(math.log(0.7) + math.log(0.3) + math.log(0.4)) / 3)


def test_brier_by_hand():
    first, second, third = 0.09 + 0.04 + 0.01, 0.01 + 0.36 + 0.49, 0.09 + 0.09 + 0.36
    assert brier(P, Y) == pytest.approx((first + second + third) / 3)
    assert brier(torch.tensor([[0.0, 1.0]]), torch.tensor([0])) == 2


def test_accuracy_and_error():
    confidence, correct = top_label(P, Y)
    assert confidence.tolist() == [0.7, 0.6, 0.4]
    assert correct.tolist() == [True, False, True]
    assert accuracy(correct) == pytest.approx(2 / 3)
    assert calibration_metrics(P.log(), Y)["error"] == pytest.approx(1 / 3)


def test_against_scikit_learn():
    p, y = many()
    assert nll(p.log(), y) == pytest.approx(log_loss(y, p))
    assert brier(p, y) == pytest.approx(brier_score_loss(y.numpy(), p.numpy(), scale_by_half=False))
    two, truth = many(classes=2)
    assert brier(two, truth) == pytest.approx(2 * brier_score_loss(truth.numpy(), two[:, 1].numpy()))


def test_reliability_by_hand():
    """Five bins: (0.4, 0.6] holds 0.5 and 0.6, one right; (0.8, 1] holds 0.9 and 1.0, both right;
    0.8 is in (0.6, 0.8].
    """
    confidence = torch.tensor([0.5, 0.9, 0.6, 1.0, 0.8], dtype=torch.float64)
    correct = torch.tensor([True, True, False, True, False])
    bins = reliability(confidence, correct, bins=5)
    assert bins.count.tolist() == [2, 1, 2]
    assert bins.lower.tolist() == pytest.approx([0.4, 0.6, 0.8])
    assert bins.upper.tolist() == pytest.approx([0.6, 0.8, 1.0])
    assert bins.confidence.tolist() == pytest.approx([0.55, 0.8, 0.95])
    assert bins.accuracy.tolist() == [0.5, 0, 1]
    expected = 2 / 5 * 0.05 + 1 / 5 * 0.8 + 2 / 5 * 0.05
    assert ece(confidence, correct, bins=5) == pytest.approx(expected)


def test_equal_mass_by_hand():
    """Two bins of three; the tie at 0.5 is not torn apart, so the first bin takes four and the
    second two."""
    confidence = torch.tensor([0.9, 0.5, 0.3, 0.5, 0.8, 0.5], dtype=torch.float64)
    correct = torch.tensor([True, True, False, False, True, False])
    bins = reliability(confidence, correct, bins=2, equal_mass=True)
    assert bins.count.tolist() == [4, 2]
    assert bins.accuracy.tolist() == [0.25, 1]
    assert bins.confidence.tolist() == pytest.approx([0.45, 0.85])
    assert ece(confidence, correct, bins=2, equal_mass=True) == pytest.approx(4 / 6 * 0.2 + 2 / 6 * 0.15)
    order = torch.randperm(6)
    again = reliability(confidence[order], correct[order], bins=2, equal_mass=True)
    torch.testing.assert_close(again.accuracy, bins.accuracy)


@pytest.mark.parametrize(("equal_mass", "strategy"), [(False, "uniform"), (True, "quantile")])
def test_bins_against_scikit_learn(equal_mass, strategy):
    """600 items in 15 bins of 40: scikit-learn's interpolated quantiles then separate the same
    items."""
    confidence, correct = top_label(*many(items=600))
    bins = reliability(confidence, correct, equal_mass=equal_mass)
    true, predicted = calibration_curve(correct.numpy(), confidence.numpy(), n_bins=15, strategy=strategy)
    assert bins.accuracy.tolist() == pytest.approx(true)
    assert bins.confidence.tolist() == pytest.approx(predicted)
    assert int(bins.count.sum()) == 600
    if equal_mass:
        assert bins.count.tolist() == [40] * 15


def test_calibrated_and_overconfident():
    """Answers drawn from the stated probabilities: ECE is small; the same answers with logits
    tripled: it is not.

    A calibrated model has some ECE too: gaps of 15 bins of about 1333 items, |N(0, 0.012²)| each,
    have the mean 0.010 with a standard deviation of 0.002, so that 0.02 is 5 of them away.
    """
    p, y = many(items=20_000, classes=3)
    sharp = torch.softmax(3 * p.log(), -1)
    for equal_mass in (False, True):
        assert ece(*top_label(p, y), equal_mass=equal_mass) < 0.02
        assert ece(*top_label(sharp, y), equal_mass=equal_mass) > 0.1


def test_confidence_and_correct_are_enough():
    """What a language model keeps, [items] each, scores as the whole table does."""
    p, y = many()
    confidence, correct = top_label(p, y)
    metrics = calibration_metrics(p.log(), y)
    assert metrics["ece"] == pytest.approx(ece(confidence, correct))
    assert metrics["ece_equal_mass"] == pytest.approx(ece(confidence, correct, equal_mass=True))
    assert metrics["error"] == pytest.approx(1 - float((p.argmax(-1) == y).double().mean()))
    assert metrics["nll"] == pytest.approx(nll(p.log(), y))
    assert metrics["brier"] == pytest.approx(brier(p, y))


def test_auroc_by_hand():
    """The six pairs are 3>1, 3>2, 3=3, 2>1, 2=2, 2<3: three wins, and two draws that count half."""
    assert auroc(torch.tensor([3.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])) == pytest.approx((3 + 2 * 0.5) / 6)
    assert auroc(torch.ones(3), torch.ones(4)) == 0.5
    assert auroc(torch.tensor([2.0]), torch.tensor([1.0])) == 1


def test_auroc_against_scikit_learn():
    g = torch.Generator().manual_seed(0)
    for levels in (3, 10, 10**9):  # many ties, some, none
        scores, truth = torch.randint(levels, (300,), generator=g), torch.rand(300, generator=g) < 0.3
        scores = scores + truth * (levels // 3)
        expected = roc_auc_score(truth.numpy(), scores.numpy())
        assert auroc(scores[truth], scores[~truth]) == pytest.approx(expected)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: nll(P.log(), torch.tensor([0, 1, 3])), "from 0 to 2"),
    (lambda: brier(P[:0], Y[:0]), "at least one item"),
    (lambda: ece(P[:, 0], Y[:2] == 0), "per item"),
    (lambda: ece(P[:, 0], Y), "true or false"),
    (lambda: ece(torch.tensor([math.nan]), torch.tensor([True])), "not NaN"),
    (lambda: reliability(P[:, 0], Y == 0, bins=0), "at least one bin"),
    (lambda: auroc(torch.ones(0), torch.ones(2)), "at least one item"),
    (lambda: auroc(torch.tensor([math.nan]), torch.ones(2)), "ordered"),
])
def test_bad_input(call, message):
    with pytest.raises(LangevinError, match=message):
        call()
