"""Sets are learnt on validation alone, kept, found again, and told by every door."""

import json
import shutil

import pytest
import torch

from langevin import LangevinError
from langevin.posterior.conformal import learn_sets
from langevin.posterior.selection import Selection
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.load import open_as
from langevin.predict.prediction_sets import name_sets
from langevin.predict.rules import read_rules
from langevin.store.folder import DECISIONS


def opened(path, selection=Selection()):  # noqa: B008  # frozen
    return open_as(ClassificationPosterior, path, selection)


@pytest.fixture
def run(classifier_run, tmp_path):
    return opened(shutil.copytree(classifier_run, tmp_path / "run"))


def test_sets_are_learnt_on_validation_and_tested(run):
    told = run.sets(alpha=0.2)
    valid, test = run.predictive(run.split("valid")), run.predictive(run.split("test"))
    expected = learn_sets(valid.probabilities, run.task.targets["valid"], alpha=0.2)
    assert told.rule.threshold == pytest.approx(expected.threshold, abs=1e-6)
    assert (told.rule.items, told.test.items) == (120, 90)
    inside = told.rule.sets(test.probabilities)
    labels = run.task.targets["test"]
    assert told.test.covered == int(inside.gather(1, labels[:, None]).sum())
    assert told.test.coverage > 0.7
    assert told.caution is None
    assert json.loads(json.dumps(told.to_dict()))["rule"]["alpha"] == 0.2


def test_predictions_name_the_set_that_was_learnt_last(run):
    texts = ["where is Rome ?", "", "bread so very"]
    assert {one.labels for one in run.predict(texts)} == {None}
    run.sets(alpha=0.3)
    rule = run.sets(alpha=0.05).rule
    expected = name_sets(rule.sets(run.predictive(run.encode(texts)).probabilities), run.labels)
    found = run.predict(texts)
    assert [one.labels for one in found] == expected
    assert all(one.label in one.labels for one in found)


def test_a_rule_is_kept_beside_the_decisions_for_these_samples_alone(run):
    decided = run.decide(coverage=0.5).rule
    first = run.sets(alpha=0.2).rule
    run.sets(alpha=0.4)
    before = (run.path / DECISIONS).read_bytes()
    assert run.set_rule_for(0.2) == first
    assert (run.path / DECISIONS).read_bytes() == before
    assert run.rule == decided
    run.decide(coverage=0.7)
    assert [kept.alpha for kept in read_rules(run.path).sets] == [0.2, 0.4]
    assert opened(run.path, Selection(samples=2)).set_rule is None


def test_validation_that_chose_when_to_stop_is_told(run):
    recipe = run.path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("[run]\n", "[run]\npatience = 3\n"))
    assert "also chose when to stop" in opened(run.path).sets(0.2).caution


def test_too_few_items_and_a_foreign_alpha_are_refused(run):
    for alpha, message in ((0.001, "at least 999"), (1.5, "alpha must be between 0 and 1")):
        with pytest.raises(LangevinError, match=message):
            run.sets(alpha)
    assert not (run.path / DECISIONS).exists()


def test_a_damaged_rule_is_refused(run):
    run.sets(0.2)
    kept = json.loads((run.path / DECISIONS).read_text())
    kept["sets"][0]["method"] = "luck"
    del kept["sha256"]
    (run.path / DECISIONS).write_text(json.dumps(kept))
    with pytest.raises(LangevinError, match=r"method must be one of .* delete it"):
        run.predict(["bread"])


def test_the_command(cli, run):
    code, out, said = cli("decide", run.path, "--sets", "0.1")
    assert code == 0, said
    assert "the sets hold the true class of 90.0% of new texts" in out
    told = json.loads(cli("decide", run.path, "--sets", "0.1", "--json")[1])
    assert told["rule"]["items"] == 120
    classified = json.loads(cli("classify", run.path, "where is Rome ?", "--json")[1])["texts"][0]
    assert classified["label"] in classified["labels"]
    for arguments in (["--sets", "0.1", "--risk", "0.1"], []):
        code, _, said = cli("decide", run.path, *arguments)
        assert (code, "--coverage SHARE or --cost N or --sets ALPHA" in said) == (2, True)
    assert cli("decide", run.path, "--sets", "2")[0] == 2


def test_names():
    inside = torch.tensor([[True, False, True], [False, True, False]])
    assert name_sets(inside, ["a", "b", "c"]) == [("a", "c"), ("b",)]
