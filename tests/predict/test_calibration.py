"""Scores of last sample, average and dropout masks are those of the evaluation; other texts are
told apart."""

import json

import pytest

from langevin import LangevinError
from langevin.posterior.uncertainty import STATISTICS
from langevin.predict.calibration import READER, calibrate, other_methods
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.load import open_as


@pytest.fixture(scope="module")
def run(classifier_run):
    return open_as(ClassificationPosterior, classifier_run)


@pytest.fixture(scope="module")
def result(run, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "strange.txt"
    outside.write_text("snow so ?\n\nRome Homer bread bread\nis is was\n")
    return calibrate(run, outside=str(outside))


def test_methods_agree_with_the_evaluation(result, classifier_run):
    assert list(result.methods) == ["last sample", "average of 4", "dropout, 4 masks"]
    posterior = open_as(ClassificationPosterior, classifier_run)
    plain, masked = posterior.evaluate(), posterior.evaluate(masks=4)
    expected = zip(result.methods, (plain.last, plain.averaged, masked.averaged), strict=True)
    for name, own in expected:
        for metric in ("nll", "brier", "ece"):
            assert getattr(result.methods[name], metric) == pytest.approx(
                own.present()[metric], rel=1e-4), (name, metric)
        assert result.methods[name].error == pytest.approx(own.error)


def test_what_is_printed_can_be_read_and_its_bins_hold_every_sentence(result):
    again = READER.validate_json(json.dumps(result.to_dict(), allow_nan=False))
    assert again == result
    for method in again.methods.values():
        bins = method.reliability()
        assert bins.ece == pytest.approx(method.ece)
        assert bins.count.sum() == 90 == result.items


def test_outside(result):
    told = result.outside
    assert told.texts == 3  # the empty line is left out
    assert set(told.auroc["average of 4"]) == set(STATISTICS)
    assert set(told.auroc["last sample"]) == {"max_probability", "entropy"}
    assert all(0 <= value <= 1 for own in told.auroc.values() for value in own.values())
    assert told.auroc["average of 4"]["entropy"] > 0.5


def test_other_runs_and_files(result, classifier_run, finished_run, tmp_path):
    methods, sha256 = other_methods(classifier_run, "test")
    assert sha256 == result.split_sha256
    assert methods["run: average of 4"].nll == pytest.approx(result.methods["average of 4"].nll)
    path = tmp_path / "other.json"
    path.write_text(json.dumps(result.to_dict()))
    assert other_methods(path, "test")[0]["run: last sample"] == result.methods["last sample"]
    with pytest.raises(LangevinError, match=r"expected numbers of the valid split in .*, got those of test; "):
        other_methods(path, "valid")
    told = result.to_dict()
    told["methods"]["last sample"]["bins"].pop("count")
    for wrong in ('{"methods": {"a": {}}}', "[", json.dumps(told)):
        path.write_text(wrong)
        with pytest.raises(LangevinError, match="expected a run folder or what"):
            other_methods(path, "test")
    with pytest.raises(LangevinError, match="expected the run of a classifier"):
        other_methods(finished_run, "test")


def test_refusals(run):
    with pytest.raises(LangevinError, match="split must be one of train, valid, test, got 'tset'"):
        calibrate(run, "tset")
    assert len(calibrate(run, masks=0).methods) == 2
