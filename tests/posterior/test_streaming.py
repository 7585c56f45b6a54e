"""Streamed moments equal the plain ones over all classes at once; the metrics equal those of the calibration room."""

from __future__ import annotations

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior import streaming
from langevin.posterior.calibration import calibration_metrics
from langevin.posterior.streaming import Predictions, StreamedMoments
from langevin.posterior.uncertainty import TokenSummary, predictive

SAMPLES, ITEMS, CLASSES = 5, 37, 11


@pytest.fixture
def logits() -> torch.Tensor:
    return 3 * torch.randn(SAMPLES, ITEMS, CLASSES, generator=torch.Generator().manual_seed(0)) + 7


@pytest.fixture
def observed() -> torch.Tensor:
    return torch.randint(CLASSES, (ITEMS,), generator=torch.Generator().manual_seed(1))


def streamed(logits: torch.Tensor, observed: torch.Tensor, cuts: list[int], dtype=torch.float64) -> Predictions:
    """Pieces of uneven sizes, sample after sample."""
    moments = StreamedMoments(len(observed), CLASSES, len(logits), dtype)
    for number, sample in enumerate(logits):
        start = 0
        for some, seen in zip(torch.tensor_split(sample, cuts), torch.tensor_split(observed, cuts), strict=True):
            moments.add(number, start, some, seen)
            start += len(seen)
    return moments.result()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 5e-6)])
def test_equals_the_plain_computation(logits, observed, dtype, tolerance, monkeypatch) -> None:
    monkeypatch.setattr(streaming, "ENTRIES", 3 * CLASSES)  # several blocks within a piece
    made = streamed(logits, observed, [4, 20], dtype)
    plain = predictive(torch.log_softmax(logits.double(), -1)).summary(observed)
    for name in TokenSummary.__dataclass_fields__:
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
        assert got.metrics()["nll"] == pytest.approx(scores["nll"], abs=1e-6)
        assert got.metrics()["brier"] == pytest.approx(scores["brier"], abs=1e-6)
        assert got.metrics()["ece"] == pytest.approx(scores["ece"], abs=1e-6)
        assert got.metrics()["error"] == pytest.approx(100 * scores["error"])


def test_blocks_join(logits, observed) -> None:
    whole = streamed(logits, observed, [])
    parts = Predictions.cat([streamed(logits[:, :20], observed[:20], [7]), streamed(logits[:, 20:], observed[20:], [])])
    torch.testing.assert_close(parts.summary.epistemic, whole.summary.epistemic)
    torch.testing.assert_close(parts.each, whole.each)
    assert parts.averaged.metrics() == pytest.approx(whole.averaged.metrics())


def test_one_sample_has_no_epistemic_part(logits, observed) -> None:
    made = streamed(logits[:1], observed, [])
    assert (made.summary.epistemic == 0).all()
    assert (made.summary.std == 0).all()
    assert made.summary.total.min() > 0


def test_a_sample_that_never_came_is_noticed(logits, observed) -> None:
    moments = StreamedMoments(ITEMS, CLASSES, 2)
    moments.add(0, 0, logits[0], observed)
    with pytest.raises(LangevinError, match="all 2 samples"):
        moments.result()


def test_bad_logits_and_classes_are_refused(logits, observed) -> None:
    moments = StreamedMoments(ITEMS, CLASSES, 1)
    broken = logits[0].clone()
    broken[3, 2] = torch.nan
    with pytest.raises(LangevinError, match="finite logits"):
        moments.add(0, 0, broken, observed)
    with pytest.raises(LangevinError, match="class indices"):
        moments.add(0, 0, logits[0], observed + CLASSES)
