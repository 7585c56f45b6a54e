"""Answers from a run folder: the average and spread of the samples; alone as in company; the data may be gone."""

import json

import pytest
import torch

import langevin
from langevin import LangevinError
from langevin.predict.classification import Classifier, answers, imbalance, remarks
from langevin.recipe import load_recipe
from langevin.predict.load import open_posterior
from langevin.training.session import start
from tests.sentences import TINY_CLASSIFIER, write_questions


@pytest.fixture
def run(classifier_run):
    return Classifier(classifier_run)


def test_answers_are_means_and_spreads_over_the_samples(run):
    encoded = run.encode(["where is Rome ?", "who was Homer ?"])
    given = run.predict({"texts": encoded.sentences})["texts"]
    each = torch.stack([p["texts"] for p in run.each({"texts": encoded.sentences})]).double().exp()
    assert len(each) == len(run.samples) == 4
    assert torch.allclose(given.probabilities, each.mean(0))
    assert torch.allclose(given.std, each.std(0), atol=1e-9)
    told = answers(run, ["where is Rome ?", "who was Homer ?"], encoded, given)
    assert [a["label"] for a in told] == ["place", "person"]
    assert told[0]["probability"] == max(told[0]["probabilities"].values()) == told[0]["probabilities"]["place"]
    assert told[0]["std"] == told[0]["stds"]["place"] > 0


def test_it_agrees_with_evaluate(run, classifier_run):
    task = run.open_task()
    given = run.predict({"test": task.sentences["test"]})["test"]
    error = (given.label != task.targets["test"]).double().mean().item()
    assert error == pytest.approx(open_posterior(classifier_run).evaluate().averaged.error)


def test_alone_or_in_company(run):
    texts = ["where is Rome ?", "who was so very so very so very Homer ?", "", "bread"]
    together = run.predict({"texts": run.encode(texts).sentences})["texts"].probabilities
    for text, expected in zip(texts, together, strict=True):
        alone = run.predict({"texts": run.encode([text]).sentences})["texts"].probabilities[0]
        assert torch.allclose(alone, expected, atol=1e-6)


def test_in_memory_gives_the_same(run, classifier_run):
    groups = {"texts": run.encode(["where is Rome ?"]).sentences}
    held = Classifier(classifier_run, in_memory=True)
    assert held.predict(groups)["texts"].probabilities.equal(run.predict(groups)["texts"].probabilities)


def test_empty_texts_get_the_shares_of_the_classes(run):
    encoded = run.encode(["", "  "])
    given = run.predict({"texts": encoded.sentences})["texts"]
    counts = torch.tensor(run.folder.facts["class_counts"]).double()
    assert torch.allclose(given.probabilities, (counts / counts.sum()).expand(2, -1), atol=1e-6)
    assert encoded.empty == [True, True]
    assert "empty texts: 2" in remarks(run, encoded)[0]


def test_texts_of_a_hundred_thousand_words_are_cut_and_it_is_said(run):
    encoded = run.encode(["where is Rome ? " * 25_000, "where is Rome ? " * 3])
    assert encoded.cut == [True, False]
    assert encoded.sentences[0].equal(encoded.sentences[1])
    assert remarks(run, encoded) == ["texts cut after 12 words (max_words of the run): 1"]


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
    run = Classifier(tokenised_run)
    assert run.tokens == "space"
    tokenised, glued = run.encode(["who was Homer ?"]).sentences[0], "who was Homer?"
    assert run.encode([glued], free=True).sentences[0].equal(tokenised)
    assert not run.encode([glued]).sentences[0].equal(tokenised)
    run.predict({"texts": [tokenised]})
    with pytest.raises(LangevinError, match="found nothing"):
        run.open_task()


def test_words_that_punctuation_makes_too_many_are_told_to_be_cut(tokenised_run):
    """Six pieces by white space, thirteen words by punctuation; the limit is twelve."""
    encoded = Classifier(tokenised_run).encode(["so, so, so, so, so, so.!", "so, so, so, so, so, so."], free=True)
    assert [len(sentence) for sentence in encoded.sentences] == [12, 12]
    assert encoded.cut == [True, False]


def test_the_command_the_predictor_and_the_estimator_give_the_same_answers(cli, tokenised_run):
    texts = ["who was Homer?", "where is Rome?", "", "so very " * 9 + "snow?"]
    code, out, said = cli("classify", tokenised_run, *texts, "--json")
    assert code == 0, said
    told = json.loads(out)["texts"]
    decisions = langevin.load(tokenised_run).predict(texts)
    estimator = langevin.BayesianTextClassifier.load(tokenised_run)
    proba, also = estimator.predict_proba(texts), estimator.predict_with_uncertainty(texts)
    for at, answer in enumerate(told):
        assert list(decisions[at].probabilities.values()) == pytest.approx(list(answer["probabilities"].values()), 1e-5)
        assert proba[at].tolist() == pytest.approx(list(answer["probabilities"].values()), 1e-5)
        assert (decisions[at].empty, decisions[at].cut) == (answer["empty"], answer["cut"])
        assert also["empty"][at] == answer["empty"]
    assert [(d.empty, d.cut) for d in decisions] == [(False, False), (False, False), (True, False), (False, True)]


def test_masks_differ_from_each_other_and_come_again(run):
    groups = {"texts": run.encode(["where is Rome ?"]).sentences}
    first, again = ([p["texts"] for p in run.each(groups, 3)] for _ in range(2))
    assert not first[0].equal(first[1])
    assert all(a.equal(b) for a, b in zip(first, again, strict=True))


def test_what_cannot_answer_is_refused(run, finished_run):
    with pytest.raises(LangevinError, match=r"expected the run of a classifier .* got one of language-model"):
        Classifier(finished_run)
    with pytest.raises(LangevinError, match="at least one text"):
        run.predict({"texts": []})


def test_imbalance_in_words():
    facts = {"class_counts": [90, 10, 100], "label_names": ["a", "b", "c"]}
    assert imbalance(facts) == ("unequal classes: 'c' is 10.0 times as frequent as 'b'; always answering 'c' would be "
                                "wrong in 50.0% of the training sentences")
    assert imbalance({"class_counts": [90, 100], "label_names": ["a", "b"]}) is None
    assert "infinitely" in imbalance({"class_counts": [0, 100], "label_names": ["a", "b"]})
