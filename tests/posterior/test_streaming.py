"""Streamed moments equal the plain ones over all classes at once; the metrics equal those of the
calibration room."""

from __future__ import annotations

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior import streaming
from langevin.posterior.calibration import calibration_metrics
from langevin.posterior.streaming import Moments, Predictions, predictive
from langevin.posterior.uncertainty import ItemSummary

SAMPLES, ITEMS, CLASSES = 5, 37, 11


@pytest.fixture
def logits() -> torch.Tensor:
    return 3 * torch.randn(SAMPLES, ITEMS, CLASSES, generator=torch.Generator().manual_seed(0)) + 7


@pytest.fixture
def observed() -> torch.Tensor:
    return torch.randint(CLASSES, (ITEMS,), generator=torch.Generator().manual_seed(1))


def streamed(
    logits: torch.Tensor, observed: torch.Tensor, cuts: list[int], dtype=torch.float64
) -> Predictions:
    """Pieces of uneven sizes, sample after sample."""
    moments = Moments(observed, dtype)
    for sample in logits:
        for piece in torch.tensor_split(sample, cuts):
            moments.add(piece)
    return moments.predictions()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 5e-6)])
def test_equals_the_plain_computation(logits, observed, dtype, tolerance, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "ENTRIES", 3 * CLASSES)  # several blocks within a piece
    made = streamed(logits, observed, [4, 20], dtype)
    plain = predictive(torch.log_softmax(logits.double(), -1))
    torch.testing.assert_close(made.probability, plain.of(observed)[0], rtol=0, atol=tolerance)
    torch.testing.assert_close(made.std, plain.of(observed)[1], rtol=0, atol=tolerance)
    assert torch.equal(made.averaged.correct, plain.label == observed)
    for name in ItemSummary.__dataclass_fields__:
        got, expected = getattr(made.summary, name), getattr(plain, name)
        if isinstance(expected, int):
            assert got == expected
        else:
            torch.testing.assert_close(got.double(), expected.double(), rtol=0, atol=tolerance, msg=name)


def test_scores_equal_those_of_all_classes(logits, observed) -> None:
    made = streamed(logits, observed, [9])
    log_p = torch.log_softmax(logits.double(), -1)
    mean = log_p.logsumexp(0) - torch.tensor(float(SAMPLES)).log()
    for got, expected in ((made.last, log_p[-1]), (made.averaged, mean)):
        scores = calibration_metrics(expected, observed)
        assert got.scores().nll == pytest.approx(scores["nll"], abs=1e-6)
        assert got.scores().brier == pytest.approx(scores["brier"], abs=1e-6)
        assert got.scores().ece == pytest.approx(scores["ece"], abs=1e-6)
        assert got.scores().error == pytest.approx(scores["error"])


def test_blocks_join(logits, observed) -> None:
    whole = streamed(logits, observed, [])
    parts = Predictions.cat([streamed(logits[:, :20], observed[:20], [7]), streamed(logits[:, 20:], observed[20:], [])])
    torch.testing.assert_close(parts.summary.epistemic, whole.summary.epistemic)
    torch.testing.assert_close(parts.each, whole.each)
    assert parts.averaged.scores().present() == pytest.approx(whole.averaged.scores().present())


def test_one_sample_has_no_epistemic_part(logits, observed) -> None:
    made = streamed(logits[:1], observed, [])
    assert (made.summary.epistemic == 0).all()
    assert (made.std == 0).all()
    assert (made.summary.label_std == 0).all()
    assert made.summary.total.min() > 0


def test_items_that_never_came_are_noticed(logits, observed) -> None:
    moments = Moments(observed)
    moments.add(logits[0])
    moments.add(logits[1, :20])
    with pytest.raises(LangevinError, match="all 37 items by every sample, got 20 by sample 1"):
        moments.predictions()
    with pytest.raises(LangevinError, match="same items"):
        moments.add(logits[1, :20])  # more than there are
    with pytest.raises(LangevinError, match="what was observed"):
        Moments().predictions()


def test_bad_logits_and_classes_are_refused(logits, observed) -> None:
    moments = Moments()
    broken = logits[0].clone()
    broken[3, 2] = torch.nan
    with pytest.raises(LangevinError, match="finite logits"):
        moments.add(broken)
    broken[3, 2] = torch.inf
    with pytest.raises(LangevinError, match="finite logits"):
        Moments().add(broken)
    with pytest.raises(LangevinError, match="class indices"):
        Moments(observed + CLASSES).add(logits[0])
    moments = Moments()
    moments.add(logits[0])
    with pytest.raises(LangevinError, match="same items"):
        moments.add(logits[0, :, :4])


def test_a_class_that_is_ruled_out_has_no_probability(logits) -> None:
    moments = Moments()
    for sample in logits:
        sample[:, 4] = -torch.inf
        moments.add(sample)
    rest = torch.cat([logits[..., :4], logits[..., 5:]], -1).double().log_softmax(-1)
    result, plain = moments.result(), predictive(rest)
    assert not result.probabilities[:, 4].any()
    torch.testing.assert_close(result.total, plain.total)
    torch.testing.assert_close(result.epistemic, plain.epistemic)
