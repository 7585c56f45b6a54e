"""Answers from a run folder: the average and spread of the samples; alone as in company; the data
may be gone."""

import json

import pytest
import torch

import langevin
from langevin import LangevinError
from langevin.posterior.ensemble import Ensemble
from langevin.posterior.selection import Selection
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.encoded import imbalance
from langevin.predict.load import open_as
from langevin.recipe import load_recipe
from langevin.training.session import start
from tests.sentences import TINY_CLASSIFIER, write_questions


def opened(path, selection=Selection()):  # noqa: B008  # frozen
    return open_as(ClassificationPosterior, path, selection)


@pytest.fixture
def run(classifier_run):
    return opened(classifier_run)


def test_answers_are_means_and_spreads_over_the_samples(run):
    texts = ["where is Rome ?", "who was Homer ?"]
    each = run.log_probs(run.encode(texts)).double().exp()
    assert len(each) == len(run.draws) == 4
    told = run.predict(texts)
    assert [one.label for one in told] == ["place", "person"]
    for at, one in enumerate(told):
        assert list(one.p) == list(one.std) == run.labels
        assert list(one.p.values()) == pytest.approx(each[:, at].mean(0).tolist())
        assert list(one.std.values()) == pytest.approx(each[:, at].std(0).tolist(), rel=1e-4)
        assert one.p[one.label] == max(one.p.values())
        assert one.text == texts[at]
    assert told[0].entropy > told[0].mutual_information > 0
    assert json.loads(json.dumps(told[0].to_dict()))["p"] == told[0].p


def test_it_agrees_with_evaluate(run, classifier_run):
    found = run.predictive(run.split("test"))
    error = (found.label != run.task.targets["test"]).double().mean().item()
    assert error == pytest.approx(run.evaluate().averaged.error)


def test_alone_or_in_company(run):
    texts = ["where is Rome ?", "who was so very so very so very Homer ?", "", "bread"]
    together = run.predictive(run.encode(texts)).probabilities
    for text, expected in zip(texts, together, strict=True):
        alone = run.predictive(run.encode([text])).probabilities[0]
        assert torch.allclose(alone, expected, atol=1e-6)


def test_piece_by_piece_is_the_same(run, monkeypatch):
    whole = run.predictive(run.split("test"))
    monkeypatch.setattr("langevin.predict.classification.AT_ONCE", 7 * 4 * 3)
    assert [each.shape[1] for each in run.each_piece(run.split("test"))] == [7] * 12 + [6]
    pieces = run.predictive(run.split("test"))
    assert torch.allclose(pieces.probabilities, whole.probabilities, atol=1e-6)
    assert torch.allclose(pieces.std, whole.std, atol=1e-6)
    assert pieces.samples == whole.samples == 4


def test_samples_that_do_not_fit_are_read_one_by_one(run):
    encoded = run.encode(["where is Rome ?", "bread", ""])
    held = run.log_probs(encoded)
    run.ensemble = Ensemble(run.model, run.draws, memory=1)
    assert len(run.ensemble.chunks) == 4
    assert torch.allclose(run.log_probs(encoded), held, atol=1e-6)


def test_all_samples_are_averaged_unless_some_are_named(run, classifier_run):
    assert len(run) == 4
    assert len(opened(classifier_run, Selection(samples=2))) == 2


def test_empty_texts_get_the_shares_of_the_classes(run):
    told = run.predict(["", "  "])
    counts = torch.tensor(run.facts["class_counts"]).double()
    for one in told:
        assert list(one.p.values()) == pytest.approx((counts / counts.sum()).tolist(), abs=1e-6)
        assert one.empty


def test_texts_of_a_hundred_thousand_words_are_cut_and_it_is_said(run):
    encoded = run.encode(["where is Rome ? " * 25_000, "where is Rome ? " * 3])
    assert encoded.cut == [True, False]
    assert encoded.sentences[0].equal(encoded.sentences[1])


@pytest.fixture(scope="module")
def tokenised_run(tmp_path_factory):
    """Of 'label text' lines, which are gone: answering needs no data."""
    folder = tmp_path_factory.mktemp("tokenised")
    corpus = write_questions(folder / "q.txt")
    recipe = load_recipe("classify", [f"corpus={corpus}", *TINY_CLASSIFIER, "epochs=1.5", "max_words=12"])
    start(recipe, folder / "run").run()
    corpus.unlink()
    return folder / "run"


def test_free_text_for_a_model_of_tokens_is_cut_at_its_punctuation(tokenised_run):
    run = opened(tokenised_run)
    assert run.facts["tokens"] == "space"
    tokenised, glued = run.encode(["who was Homer ?"]).sentences[0], "who was Homer?"
    assert run.encode([glued], free=True).sentences[0].equal(tokenised)
    assert not run.encode([glued]).sentences[0].equal(tokenised)
    assert run.predict([glued])[0].label in run.labels
    with pytest.raises(LangevinError, match="found nothing"):
        run.split("test")


def test_words_that_punctuation_makes_too_many_are_told_to_be_cut(tokenised_run):
    """Six pieces by white space, thirteen words by punctuation; the limit is twelve."""
    encoded = opened(tokenised_run).encode(["so, so, so, so, so, so.!", "so, so, so, so, so, so."], free=True)
    assert [len(sentence) for sentence in encoded.sentences] == [12, 12]
    assert encoded.cut == [True, False]


def test_the_command_the_predictor_and_the_estimator_give_the_same_answers(cli, tokenised_run):
    texts = ["who was Homer?", "where is Rome?", "", "so very " * 9 + "snow?"]
    code, out, said = cli("classify", tokenised_run, *texts, "--json")
    assert code == 0, said
    told = json.loads(out)["texts"]
    door = [one.to_dict() for one in langevin.load(tokenised_run).predict(texts)]
    estimator = langevin.BayesianTextClassifier.load(tokenised_run)
    proba, also = estimator.predict_proba(texts), estimator.predict_with_uncertainty(texts)
    assert door == told
    for at, answer in enumerate(told):
        assert proba[at].tolist() == pytest.approx(list(answer["p"].values()), 1e-5)
        assert also["empty"][at] == answer["empty"]
    assert [(one["empty"], one["cut"]) for one in told] == [
        (False, False), (False, False), (True, False), (False, True)]


def test_masks_differ_from_each_other_and_come_again(run):
    encoded = run.encode(["where is Rome ?"])
    first, again = (list(run.masked_log_probs(encoded, 3)) for _ in range(2))
    assert not first[0].equal(first[1])
    assert all(a.equal(b) for a, b in zip(first, again, strict=True))


def test_what_cannot_answer_is_refused(run, finished_run):
    with pytest.raises(LangevinError, match=r"expected the run of a classifier .* got one of language-model"):
        opened(finished_run)
    with pytest.raises(LangevinError, match="at least one text"):
        run.predict([])
    with pytest.raises(LangevinError, match="split must be one of"):
        run.split("exam")


def test_imbalance_in_words():
    facts = {"class_counts": [90, 10, 100], "label_names": ["a", "b", "c"]}
    assert imbalance(facts) == ("unequal classes: 'c' is 10.0 times as frequent as 'b'; always answering 'c' would be "
                                "wrong in 50.0% of the training sentences")
    assert imbalance({"class_counts": [90, 100], "label_names": ["a", "b"]}) is None
    assert "infinitely" in imbalance({"class_counts": [0, 100], "label_names": ["a", "b"]})
