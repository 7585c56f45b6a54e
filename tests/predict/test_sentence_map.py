"""The least certain sentences are those of the largest score; states are means over the samples."""

import pytest
import torch

from langevin import LangevinError
from langevin.posterior.selection import Selection
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.load import open_as
from langevin.predict.sentence_map import map_sentences, mean_states


@pytest.fixture
def run(classifier_run):
    return open_as(ClassificationPosterior, classifier_run)


def test_the_least_certain_come_first(run):
    found = map_sentences(run, 5, "entropy")
    texts = run.split("test").with_words()
    expected = run.predictive(texts)
    order = expected.total.argsort(descending=True)
    assert [one.entropy for one in found.listed] == pytest.approx(expected.total[order[:5]].tolist())
    first, at = found.listed[0], int(order[0])
    labels = run.task.targets["test"][~torch.tensor(run.split("test").empty)]
    true = int(labels[at])
    assert (first.rank, first.text, first.true) == (1, texts.texts[at], run.labels[true])
    assert first.true_mean == pytest.approx(float(expected.probabilities[at, true]), rel=1e-5)
    assert first.true_std == pytest.approx(float(expected.std[at, true]), rel=1e-4)
    assert first.predicted_mean == pytest.approx(float(expected.confidence[at]), rel=1e-5)
    assert first.correct == (first.true == first.predicted)
    assert found.scores[:5].tolist() == [one.score for one in found.listed]
    assert found.labels.bincount().tolist() == labels.bincount().tolist()
    assert found.states.shape == (89, 16)
    with pytest.raises(LangevinError, match="split must be one of"):
        map_sentences(run, split="exam")


def test_one_sample_is_ranked_by_entropy(run, classifier_run):
    assert map_sentences(run, 1).statistic == "standard_deviation"
    alone = open_as(ClassificationPosterior, classifier_run, Selection(samples=1))
    found = map_sentences(alone, 3)
    assert found.statistic == "entropy"
    assert found.listed == map_sentences(alone, 3, "entropy").listed
    assert {one.mutual_information for one in found.listed} == {0.0}
    with pytest.raises(LangevinError, match="expected several samples to rank by standard_deviation, got one"):
        map_sentences(alone, 3, "standard_deviation")


def test_states_are_means_over_the_samples(run):
    sentences = run.encode(["who was so very Homer ?", "bread", "where is Rome ?"]).sentences
    each = []
    for draw in run.draws:
        draw.load_into(run.model)
        with torch.no_grad():
            each.append(torch.cat([run.model.features(s[None], torch.tensor([len(s)])) for s in sentences]))
    assert torch.allclose(mean_states(run, sentences), torch.stack(each).mean(0), atol=1e-6)
