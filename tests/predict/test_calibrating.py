"""Scores of last sample, average and dropout masks are those of the evaluation; other texts are told apart."""

import json

import pytest

from langevin import LangevinError
from langevin.posterior.uncertainty import STATISTICS
from langevin.predict.calibrating import bins_of, calibrate_run, other_methods
from langevin.predict.classification import Classifier
from langevin.predict.load import open_posterior


@pytest.fixture(scope="module")
def result(classifier_run, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "strange.txt"
    outside.write_text("snow so ?\n\nRome Homer bread bread\nis is was\n")
    return calibrate_run(Classifier(classifier_run), outside=str(outside))


def test_methods_agree_with_the_evaluation(result, classifier_run):
    assert list(result["methods"]) == ["last sample", "average of 4", "dropout, 4 masks"]
    plain = open_posterior(classifier_run).evaluate()
    masked = open_posterior(classifier_run).evaluate(masks=4)
    expected = dict(zip(result["methods"], (plain.last, plain.averaged, masked.averaged), strict=True))
    for name, own in expected.items():
        for metric in ("nll", "brier", "ece"):
            assert result["methods"][name][metric] == pytest.approx(own.present()[metric], rel=1e-4), (name, metric)
        assert result["methods"][name]["error"] == pytest.approx(own.error)


def test_bins_survive_and_hold_every_sentence(result):
    for method in json.loads(json.dumps(result))["methods"].values():
        bins = bins_of(method)
        assert bins.ece == pytest.approx(method["ece"])
        assert bins.count.sum() == 90


def test_outside(result):
    told = result["outside"]
    assert told["texts"] == 3  # the empty line is left out
    assert set(told["auroc"]["average of 4"]) == set(STATISTICS)
    assert set(told["auroc"]["last sample"]) == {"max_probability", "entropy"}
    assert all(0 <= value <= 1 for own in told["auroc"].values() for value in own.values())
    assert told["auroc"]["average of 4"]["entropy"] > 0.5


def test_other_runs_and_files(result, classifier_run, tmp_path):
    methods, sha256 = other_methods(classifier_run, "test")
    assert sha256 == result["split_sha256"]
    assert methods["run: average of 4"]["nll"] == result["methods"]["average of 4"]["nll"]
    path = tmp_path / "other.json"
    path.write_text(json.dumps(result))
    assert other_methods(path, "test")[0]["run: last sample"] == result["methods"]["last sample"]
    with pytest.raises(LangevinError, match=r"expected numbers of the valid split in .*, got those of test; "):
        other_methods(path, "valid")
    path.write_text('{"methods": {"a": {}}}')
    with pytest.raises(LangevinError, match="expected a run folder or what"):
        other_methods(path, "test")


def test_refusals(classifier_run):
    run = Classifier(classifier_run)
    with pytest.raises(LangevinError, match="split must be one of train, valid, test, got 'tset'"):
        calibrate_run(run, "tset")
    assert len(calibrate_run(run, mc_dropout=0)["methods"]) == 2
