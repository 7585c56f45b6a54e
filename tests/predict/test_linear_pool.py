"""A run with linear parts answers by the pool of all draws, everywhere, and tells its members."""

import json
import shutil

import pytest
import torch

from langevin.posterior.selection import Selection
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.load import open_as
from langevin.store.folder import RunFolder
from langevin.store.records import read_sealed, write_sealed
from langevin.tasks.members import add_linear_members, pool_members


@pytest.fixture(scope="module")
def pooled(classifier_run, tmp_path_factory):
    """A run with a linear part over n-grams, weighed on validation."""
    folder = tmp_path_factory.mktemp("pooled") / "run"
    shutil.copytree(classifier_run, folder)
    add_linear_members(RunFolder(folder))
    return folder


@pytest.fixture
def folder(pooled, tmp_path):
    return shutil.copytree(pooled, tmp_path / "run")


def opened(path, selection=Selection()):  # noqa: B008  # frozen
    return open_as(ClassificationPosterior, path, selection)


def test_answers_are_of_the_pool(pooled, classifier_run):
    run, alone = opened(pooled), opened(classifier_run)
    assert alone.members is None
    texts = ["where is Rome ?", "", "who was Homer ?"]
    encoded = run.encode(texts)
    network = run.network_log_probs(encoded)
    assert torch.allclose(network, alone.log_probs(encoded), atol=1e-6)
    expected = pool_members(run.members, network, texts, None)
    assert len(expected) == run.pool_draws == max(4, run.members.parts["n-grams"].draws)
    found, p = run.predict(texts), expected.double().exp()
    for at, one in enumerate(found):
        assert list(one.p.values()) == pytest.approx(p[:, at].mean(0).tolist(), abs=1e-6)
        assert list(one.std.values()) == pytest.approx(p[:, at].std(0).tolist(), abs=1e-6)
    assert found[1].p == pytest.approx(alone.predict([""])[0].p, abs=1e-6)
    assert found[0].p != pytest.approx(alone.predict(texts)[0].p, abs=1e-4)
    few = opened(pooled, Selection(samples=1))
    assert len(few) == 1
    assert few.predict(texts)[0].mutual_information > 0


def test_each_member_and_the_pool_are_scored(pooled, classifier_run):
    run = opened(pooled)
    told, plain = run.evaluate(), opened(classifier_run).evaluate()
    assert (plain.pooled, plain.members) == (None, {})
    assert set(told.members) == {"network", "n-grams"}
    assert told.members["network"] == told.averaged
    assert told.averaged.nll == pytest.approx(plain.averaged.nll, abs=1e-6)
    labels, found = run.task.targets["test"], run.predictive(run.split("test"))
    assert told.pooled.error == pytest.approx((found.label != labels).double().mean().item())
    true, _ = found.of(labels)
    assert told.pooled.nll == pytest.approx(-true.log().mean().item(), abs=1e-5)
    assert run.evaluate(masks=2).pooled is None


def test_uncertainty_and_calibration_are_of_the_pool(pooled, cli):
    run = opened(pooled)
    found = run.predictive(run.split("test"))
    told = run.rank().result
    assert told.mutual_information == pytest.approx(found.epistemic.mean().item(), abs=1e-6)
    assert told.averaged.nll == pytest.approx(run.evaluate().pooled.nll, abs=1e-5)
    assert told.samples == run.pool_draws
    calibrated = json.loads(cli("calibrate", pooled, "--mc-dropout", "0", "--json")[1])
    average = calibrated["methods"][f"average of {run.pool_draws}"]
    assert average["nll"] == pytest.approx(told.averaged.nll, abs=1e-5)


def test_rules_are_learnt_with_the_pool_and_say_that_it_was_weighed(folder, classifier_run):
    told = opened(folder).decide(risk=0.5, confidence=0.9)
    assert "the validation sentences also chose the weights of the members" in told.caution
    assert told.splits[0].predictive.samples == opened(folder).pool_draws
    assert opened(folder).fingerprint != opened(classifier_run).fingerprint


def test_parts_that_were_weighed_with_other_samples_are_left_out(folder, classifier_run, caplog):
    path = folder / "pool.json"
    record = read_sealed(path)
    write_sealed(path, record | {"samples": ["0:" + "0" * 64]})
    run = opened(folder)
    assert run.predict(["bread"])[0].p == pytest.approx(
        opened(classifier_run).predict(["bread"])[0].p, abs=1e-6)
    assert "weighed with other samples" in caplog.text


def test_an_export_takes_the_linear_parts_along(cli, pooled, tmp_path):
    target = tmp_path / "out"
    assert cli("export", pooled, target)[0] == 0
    texts = ["where is Rome ?", "what is bread ?"]
    whole, alone = opened(pooled), opened(target)
    assert alone.members.record == whole.members.record
    for one, other in zip(whole.predict(texts), alone.predict(texts), strict=True):
        assert one.p == pytest.approx(other.p, abs=1e-6)
    metrics = json.loads((target / "config.json").read_text())["metrics"]
    assert metrics["averaged"]["nll"] == pytest.approx(whole.evaluate().pooled.nll, abs=1e-5)
    (target / "pool.json").unlink()
    code, _, said = cli("classify", target, *texts)
    assert code == 2
    assert "expected linear parts in" in said


def test_what_was_refitted_promises_nothing(cli, classifier_run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(classifier_run, folder)
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("refit = false", "refit = true"))
    add_linear_members(RunFolder(folder))
    assert opened(folder).members.record.refitted
    assert opened(folder).evaluate("valid").pooled is None
    assert opened(folder).evaluate("test").pooled is not None
    for asked in (["--risk", "0.5"], ["--sets", "0.3"]):
        code, _, said = cli("decide", folder, *asked)
        assert code == 2
        assert "train without --refit" in said
