"""Rules are learned on validation, kept, found again, and tested on what they were not learned
on."""

import json
import math
import shutil
from dataclasses import replace

import pytest
import torch

from langevin import LangevinError
from langevin.posterior.risk import DecisionRule, learn_threshold
from langevin.posterior.streaming import predictive
from langevin.posterior.uncertainty import STATISTICS, uncertainty_score
from langevin.posterior.selection import Selection
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.encoded import EncodedTexts, make_predictions
from langevin.predict.decision import (
    LabelledPredictions,
    RiskTarget,
    learn,
    rank,
    score_promise,
)
from langevin.predict.load import open_as
from langevin.predict.rules import read_rules
from langevin.store.folder import DECISIONS, MARKER


def opened(path, selection=Selection()):  # noqa: B008  # frozen
    return open_as(ClassificationPosterior, path, selection)


@pytest.fixture
def run(classifier_run, tmp_path):
    shutil.copytree(classifier_run, tmp_path / "run")
    return opened(tmp_path / "run")


def given(items=1000, seed=0, samples=5):
    """Made-up predictions whose answers are right about as often as they say."""
    g = torch.Generator().manual_seed(seed)
    centre = 4.0 * torch.randn(items, 3, generator=g)
    logits = centre + 0.3 * torch.randn(samples, items, 3, generator=g)
    labels = torch.multinomial(torch.softmax(centre, -1), 1, generator=g)[:, 0]
    return LabelledPredictions(predictive(torch.log_softmax(logits, -1)), labels, 0)


def test_a_risk_rule_keeps_its_promise_on_new_answers():
    rule = learn(RiskTarget("risk", 0.1, 0.95), given(seed=1))
    broken = sum(not score_promise(rule, given(20_000, seed)).held for seed in range(2, 7))
    assert broken == 0
    assert rule.statistic in STATISTICS
    assert 0.1 < rule.coverage < 1


def test_auto_takes_the_best_ranking_and_pays_for_the_choice():
    part = given(seed=1)
    best = rank(part).best
    auto, named = learn(RiskTarget("risk", 0.1, 0.95), part), learn(RiskTarget("risk", 0.1, 0.95, best), part)
    assert auto.statistic == named.statistic == best
    assert auto.coverage <= named.coverage
    assert learn(RiskTarget("coverage", 0.7, None, "mutual_information"), part).coverage == pytest.approx(0.7)


def test_numbers_of_a_ranking_by_hand():
    p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]).log()
    part = LabelledPredictions(predictive([p]), torch.tensor([0, 1, 1, 1]), 2)
    told = rank(part)
    assert (told.items, told.empty, told.error) == (4, 2, 0.5)
    assert told.aurc["max_probability"] == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    # of equals: the right ones together, then the rest
    assert told.oracle == pytest.approx(0.5 * 0 + 0.5 * 0.5)
    assert told.risk_at["entropy"] == pytest.approx(
        {"0.5": 0.5, "0.7": 1 / 3, "0.8": 0.5, "0.9": 0.5, "0.95": 0.5, "1": 0.5})
    assert told.error_auroc["max_probability"] == pytest.approx(3 / 4)
    assert told.curves["entropy"]["coverage"] == [0.25, 0.5, 0.75, 1.0]


def test_promise_by_hand():
    p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]).log()
    part = LabelledPredictions(predictive([p]), torch.tensor([0, 1, 1]), 0)
    rule = DecisionRule("max_probability", 0.3, "risk", 0.25, 0.95, 100, 50, 1, 0.2)
    told = score_promise(rule, part)
    assert (told.accepted, told.errors, told.risk, told.held) == (2, 1, 0.5, False)
    assert told.chance == pytest.approx(1 - 0.75**2)
    assert score_promise(DecisionRule("entropy", math.inf, "coverage", 1, None, 9, 9, 1, None), part).held is None


def test_empty_texts_always_go_to_a_person(run):
    part = given(3)
    rule = DecisionRule("standard_deviation", math.inf, "coverage", 1, None, 9, 9, 1, None)
    encoded = EncodedTexts(list("abc"), [torch.tensor([1])] * 3, [False, True, False], [False] * 3)
    some = replace(part.predictive, **{
        name: getattr(part.predictive, name)[:3] for name in (
            "label", "confidence", "label_std", "total", "aleatoric", "epistemic", "disagreement",
            "probabilities", "std")
    })
    told = make_predictions(run.labels, encoded, some, rule, None)
    assert [one.accepted for one in told] == [True, False, True]
    assert [one.accepted for one in make_predictions(run.labels, encoded, some, None, None)] == [None] * 3


def test_only_sentences_with_words_are_judged(run):
    judged = run.predict_splits(("valid", "test"))
    assert (len(judged["valid"].labels), judged["valid"].empty) == (119, 1)
    assert (len(judged["test"].labels), judged["test"].empty) == (89, 1)


def test_rules_are_kept_and_found_again(run):
    first = run.rule_for(RiskTarget("coverage", 0.5))
    second = run.rule_for(RiskTarget("coverage", 0.8))
    assert first.threshold < second.threshold
    assert run.rule_for(None) == second  # the last one asked for
    assert run.rule_for(RiskTarget("coverage", 0.5)) == first
    assert len(read_rules(run.path).rules) == 2
    assert run.rule_for(None) == first  # now this is the last one
    written = (run.path / DECISIONS).read_bytes()
    assert run.rule_for(RiskTarget("coverage", 0.5)) == first
    assert (run.path / DECISIONS).read_bytes() == written


def test_other_samples_have_rules_of_their_own(run):
    all_of_them = run.rule_for(RiskTarget("coverage", 0.5))
    fewer = opened(run.path, Selection(samples=2))
    assert fewer.rule_for(None) != all_of_them
    assert [entry.count for entry in read_rules(run.path).rules] == [4, 2]
    assert run.rule_for(None) == all_of_them


def test_the_default_needs_no_question(run):
    rule = run.rule_for(None)
    assert (rule.target, rule.value) == ("coverage", 0.9)


def test_report_of_a_run(run):
    told = run.decide(risk=0.5, confidence=0.9)
    written = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert set(written["valid"]["aurc"]) == set(STATISTICS) == set(written["test"]["curves"])
    assert DecisionRule.from_dict(written["rule"]) == told.rule == run.rule
    test = told.splits[-1]
    assert told.promise.accepted == int(told.rule.decide(test.scores(told.rule.statistic)).sum())
    assert told.promise.held == (told.promise.risk <= 0.5)
    assert written["promise"] == told.promise.to_dict()
    assert "splits" not in written
    with pytest.raises(LangevinError, match="a risk or a coverage, got neither"):
        run.decide()


def test_predictions_are_accepted_by_the_rule_that_was_asked_for_last(run):
    texts = run.split("test").texts
    assert {one.accepted for one in run.predict(texts)} == {None}
    rule = run.decide(coverage=0.5).rule
    scores = uncertainty_score(rule.statistic, run.predictive(run.encode(texts, free=True)))
    accepted = [bool(yes) and text != "" for yes, text in zip(rule.decide(scores), texts, strict=True)]
    assert [one.accepted for one in run.predict(texts)] == accepted
    assert 0.3 < sum(accepted) / len(accepted) < 0.7


def test_a_risk_out_of_reach_is_refused_with_the_best_that_can_be(run):
    with pytest.raises(LangevinError, match=r"a risk of 0.0001 cannot be promised .* the least that can is 0\.\d+"):
        run.rule_for(RiskTarget("risk", 0.0001, 0.95))
    assert not (run.path / DECISIONS).exists()


def test_one_sample_is_judged_by_what_it_says_itself(run):
    alone = opened(run.path, Selection(samples=1))
    told = alone.decide(coverage=0.9)
    assert set(told.valid.aurc) == {"max_probability", "entropy"} == set(told.splits[0].curves())
    assert told.rule.statistic in ("max_probability", "entropy")
    for statistic in ("standard_deviation", "mutual_information"):
        with pytest.raises(LangevinError, match=f"expected several samples to rank by {statistic}"):
            alone.rule_for(RiskTarget("coverage", 0.9, None, statistic))


def test_one_sample_pays_for_two_comparisons_only():
    part = given(samples=1)
    best = rank(part).best
    scores, correct = part.scores(best), part.correct
    expected = learn_threshold(scores, correct, risk=0.15, confidence=0.95, statistic=best, comparisons=2)
    assert learn(RiskTarget("risk", 0.15), part) == expected


def test_an_old_rule_by_the_spread_of_one_sample_is_learned_anew(run):
    alone = opened(run.path, Selection(samples=1))
    alone.rule_for(RiskTarget("coverage", 0.9))
    kept = json.loads((run.path / DECISIONS).read_text())
    kept["rules"][0]["rule"]["statistic"] = "mutual_information"
    del kept["sha256"]  # as older versions left it
    (run.path / DECISIONS).write_text(json.dumps(kept))
    assert alone.rule_for(None).statistic in ("max_probability", "entropy")


RISK = DecisionRule("entropy", 0.3, "risk", 0.25, 0.95, 100, 50, 1, 0.2)


def test_a_promise_on_data_that_chose_the_model_is_told_to_be_optimistic(run):
    folder = run.opened.folder
    assert run.caution(RISK) is None
    recipe, origin = folder.path / "recipe.toml", folder.path / "origin.json"
    recipe.write_text(recipe.read_text().replace("[run]\n", "[run]\npatience = 3\n"))
    run = opened(folder.path)
    assert run.caution(RISK) == (
        "the validation sentences also chose when to stop, so the promise is a little optimistic; "
        "train with patience=none for an exact one")
    # which promises nothing
    assert run.caution(replace(RISK, target="coverage", confidence=None)) is None
    origin.write_text(json.dumps(folder.origin.flat() | {"temperature_choice": {}}))
    (folder.path / MARKER).unlink()  # which older versions did not write
    run = opened(folder.path)
    assert "chose when to stop and the temperature, so" in run.caution(RISK)
    assert run.decide(risk=0.5, confidence=0.9).caution == run.caution(RISK)


def test_a_promise_with_the_samples_that_validation_prefers_is_optimistic_too(run):
    said = opened(run.path, Selection("best")).caution(RISK)
    assert "chose which samples to average, so" in said
    assert said.endswith("; leave --select best out for an exact one")


def test_a_student_inherits_the_choices_of_its_teacher(run, tmp_path):
    student = shutil.copytree(run.path, tmp_path / "student")
    facts = run.opened.folder.origin.flat() | {"teacher": {
        "run": str(run.path), "per_row": 1, "data_weight": 0.0, "generated": 0, "select": "thinned",
        "discard": 0, "samples": [{"file": "1.safetensors", "step": 1, "sha256": "0" * 64, "chain": 0}]}}
    (student / "origin.json").write_text(json.dumps(facts))
    (student / MARKER).unlink()  # which older versions did not write
    assert opened(student).caution(RISK) is None
    recipe = run.path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("[run]\n", "[run]\npatience = 3\n"))
    assert "when to stop" in opened(student).caution(RISK)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((None, 0.9, 0.99, "auto"), "confidence 0.99, got a coverage; add --risk or leave --confidence out"),
        ((None, None, 0.99, "auto"), "confidence 0.99, got none"),
        ((None, None, None, "entropy"), "a risk or a coverage to learn by the statistic 'entropy', got neither"),
        ((0.1, 0.9, 0.95, "auto"), "either a risk or a coverage"),
        ((0.1, None, None, "auto", 5.0), "a cost alone"),
        ((0.1, None, 0.95, "entropi"), "did you mean 'entropy'"),
    ],
)
def test_impossible_targets(asked, message):
    with pytest.raises(LangevinError, match=message):
        RiskTarget.parse(*asked)


def test_targets_of_a_command():
    assert RiskTarget.parse(None, None, None, "auto") is None
    assert RiskTarget.parse(0.1, None, None, "entropy") == RiskTarget("risk", 0.1, 0.95, "entropy")
    assert RiskTarget.parse(None, 0.9, None, "entropy") == RiskTarget("coverage", 0.9, None, "entropy")


def test_a_damaged_file_of_rules_is_named(run):
    (run.path / DECISIONS).write_text('{"rules": [{"asked": 3}]}')
    with pytest.raises(LangevinError, match=r"expected rules\.0\.asked in .*decision\.json .* delete it"):
        run.rule_for(None)


def test_a_cost_of_errors_accepts_what_is_cheapest(run):
    told = run.decide(cost=3.0)
    assert (told.rule.target, told.promise.held, told.caution) == ("cost", None, None)
    cheap, dear = run.decide(cost=1.5).rule, run.decide(cost=50.0).rule
    assert dear.accepted <= told.rule.accepted <= cheap.accepted
    assert run.rule == dear
