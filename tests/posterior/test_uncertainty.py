"""Entropy, mutual information and spread, by hand, against other formulas, and streamed against all
at once."""

import math
from dataclasses import fields

import pytest
import torch
from scipy.stats import entropy

from langevin import LangevinError
from langevin.posterior import streaming
from langevin.posterior.streaming import Moments, predictive
from langevin.posterior.uncertainty import STATISTICS, ItemSummary, uncertainty_score

LOG2 = math.log(2)


def by_hand():
    """Two samples, three items: they disagree for certain; they agree for certain; they agree to be
    unsure."""
    p = torch.tensor([[[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]], [[0, 1, 0], [0, 1, 0], [0.5, 0.5, 0]]])
    return predictive(p.double().log())


def random_samples(samples=7, items=11, classes=5, seed=0):
    logits = 2 * torch.randn(samples, items, classes, generator=torch.Generator().manual_seed(seed))
    return logits.double().log_softmax(-1)


def check_by_hand():
    result = by_hand()
    torch.testing.assert_close(result.total, torch.tensor([LOG2, 0, LOG2]).double())
    torch.testing.assert_close(result.aleatoric, torch.tensor([0, 0, LOG2]).double())
    torch.testing.assert_close(result.epistemic, torch.tensor([LOG2, 0, 0]).double())
    torch.testing.assert_close(result.std[0], torch.tensor([math.sqrt(0.5), math.sqrt(0.5), 0]).double())
    assert result.label.tolist() == [0, 1, 0]
    assert result.disagreement.tolist() == [0.5, 0, 0]
    assert result.confidence.tolist() == [0.5, 1, 0.5]
    assert result.samples == 2


def test_by_hand():
    check_by_hand()


def test_entropies_of_something_else_would_fail(monkeypatch):
    """The planted bug: entropy in bits."""
    true = torch.special.entr
    monkeypatch.setattr(streaming.torch.special, "entr", lambda p: true(p) / LOG2)
    with pytest.raises(AssertionError):
        check_by_hand()


def test_against_other_formulas():
    log_p = random_samples()
    p, result = log_p.exp(), predictive(log_p)
    mean = p.mean(0)
    torch.testing.assert_close(result.probabilities, mean)
    torch.testing.assert_close(result.std, p.std(0))
    torch.testing.assert_close(result.total, torch.from_numpy(entropy(mean.numpy(), axis=-1)))
    torch.testing.assert_close(result.aleatoric, torch.from_numpy(entropy(p.numpy(), axis=-1)).mean(0))
    # mutual information as mean KL to the average
    divergence = (p * (log_p - mean.log())).sum(-1).mean(0)
    torch.testing.assert_close(result.epistemic, divergence)
    assert float(result.epistemic.min()) > 0.01
    votes = (p.argmax(-1) != mean.argmax(-1)).double().mean(0)
    torch.testing.assert_close(result.disagreement, votes)
    assert 0 < float(votes.mean()) < 1


def test_predictions_of_single_precision_are_summed_in_double():
    log_p = random_samples(classes=1000)
    exact, rough = predictive(log_p), predictive(log_p.float())
    assert rough.epistemic.dtype == torch.float64
    torch.testing.assert_close(rough.epistemic, exact.epistemic, atol=1e-5, rtol=0)


def test_one_sample_has_no_spread():
    result = predictive(random_samples(samples=1))
    for nothing in (result.std, result.epistemic, result.disagreement):
        assert not nothing.any()
    rough = predictive(random_samples(samples=1, items=500).float())
    assert not rough.epistemic.any()  # not even rounding


@pytest.mark.parametrize("statistic", ["mutual_information", "standard_deviation"])
def test_one_sample_is_not_ranked_by_its_spread(statistic):
    with pytest.raises(LangevinError, match="got one, which has no spread; use max_probability or entropy"):
        uncertainty_score(statistic, predictive(random_samples(samples=1)))
    assert uncertainty_score("entropy", predictive(random_samples(samples=1))).shape == (11,)


def test_mutual_information_is_never_negative():
    """Equal samples: the difference of entropies is rounding, of either sign."""
    log_p = random_samples(samples=1, items=2000).float().expand(3, -1, -1)
    assert float(predictive(log_p).epistemic.min()) == 0


def test_probability_of_the_true_class():
    log_p = random_samples()
    truth = torch.arange(11) % 5
    mean, std = predictive(log_p).of(truth)
    each = log_p.exp()[:, torch.arange(11), truth]
    torch.testing.assert_close(mean, each.mean(0))
    torch.testing.assert_close(std, each.std(0))


def test_summary_in_batches_equals_the_whole():
    """Batch after batch, every sample each: what is kept is of one number per item, and the
    same."""
    log_p, observed = random_samples(items=23), torch.arange(23) % 5
    pieces = []
    for begin in range(0, 23, 6):
        moments = Moments(observed[begin : begin + 6])
        for sample in log_p:
            moments.add(sample[begin : begin + 6])
        pieces.append(moments.predictions())
    joined, whole = ItemSummary.cat(piece.summary for piece in pieces), predictive(log_p)
    for field in fields(ItemSummary):
        if field.name != "samples":
            value = getattr(joined, field.name)
            assert value.shape == (23,)
            assert value.untyped_storage().nbytes() <= 23 * 8
            torch.testing.assert_close(value, getattr(whole, field.name))
    correct = torch.cat([piece.averaged.correct for piece in pieces])
    assert torch.equal(correct, whole.label == observed)
    probability = torch.cat([piece.probability for piece in pieces])
    truth = log_p.exp().mean(0)[torch.arange(23), observed]
    torch.testing.assert_close(probability, truth, rtol=1e-6, atol=0)
    for name in STATISTICS:
        scores = uncertainty_score(name, joined), uncertainty_score(name, whole)
        torch.testing.assert_close(*scores)


def test_statistics_grow_with_uncertainty():
    """Item 0 is disputed, item 1 certain: each score puts them in this order."""
    result = by_hand()
    assert set(STATISTICS) == {"max_probability", "entropy", "mutual_information", "standard_deviation"}
    for name in STATISTICS:
        score = uncertainty_score(name, result)
        assert float(score[0]) > float(score[1]) == 0
    assert float(uncertainty_score("standard_deviation", result)[0]) == pytest.approx(math.sqrt(0.5))
    assert float(uncertainty_score("max_probability", result)[2]) == 0.5


def test_the_result_does_not_change_when_more_is_added():
    moments, log_p = Moments(), random_samples()
    moments.add(log_p[0])
    first = moments.result()
    before = first.probabilities.clone()
    moments.add(log_p[1])
    assert torch.equal(first.probabilities, before)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: predictive([]), "at least one sample"),
    (lambda: predictive([torch.zeros(3)]), r"\[items, classes\]"),
    (lambda: predictive([torch.randn(2, 4)]), "log_softmax"),
    (lambda: predictive([torch.full((2, 4), math.nan)]), "sums to nan"),
    (lambda: predictive([random_samples()[0], random_samples()[0, :3]]), "same items"),
    (lambda: uncertainty_score("variance", by_hand()), "max_probability, entropy"),
    (lambda: by_hand().of(torch.tensor([0, 1, 3])), "from 0 to 2"),
    (lambda: by_hand().of(torch.tensor([0, 1])), "3 class indices"),
    (lambda: by_hand().of(torch.tensor([0.0, 1.0, 1.0])), "float32"),
    (lambda: ItemSummary.cat([]), "no summaries"),
])
def test_bad_input(call, message):
    with pytest.raises(LangevinError, match=message):
        call()


def test_batches_of_different_samples_do_not_mix():
    pieces = [predictive(random_samples(samples=n, items=2)) for n in (2, 3)]
    with pytest.raises(LangevinError, match=r"got \[2, 3\]"):
        ItemSummary.cat(pieces)
