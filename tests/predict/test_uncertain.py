"""The least certain sentences are those of the largest score; states and curves are those of the samples."""

import pytest
import torch

from langevin import LangevinError
from langevin.predict.classification import Classifier
from langevin.predict.uncertain import mean_states, most_uncertain
from langevin.posterior.selection import Selection


def test_most_uncertain(classifier_run):
    run = Classifier(classifier_run)
    result, land = most_uncertain(run, 5, "entropy", states=True)
    task = run.open_task()
    worded = torch.tensor([len(s) > 0 for s in task.sentences["test"]])
    given = run.predict({"test": [s for s in task.sentences["test"] if len(s)]})["test"]
    assert [s["entropy"] for s in result["sentences"]] == given.total.sort(descending=True).values[:5].tolist()
    first = result["sentences"][0]
    at = int(given.total.argmax())
    true = int(task.targets["test"][worded][at])
    assert first["true"] == task.labels[true]
    assert first["true_mean"] == pytest.approx(float(given.probabilities[at, true]))
    assert first["true_std"] == pytest.approx(float(given.std[at, true]))
    assert first["correct"] == (first["true"] == first["predicted"])
    assert land.scores[:5].tolist() == [s["score"] for s in result["sentences"]]
    assert land.states.shape == (89, 16)
    with pytest.raises(LangevinError, match="split must be one of"):
        most_uncertain(run, split="exam")


def test_one_sample_is_ranked_by_entropy(classifier_run):
    assert most_uncertain(Classifier(classifier_run), 1)[0]["statistic"] == "standard_deviation"
    alone = Classifier(classifier_run, Selection(samples=1))
    result, _ = most_uncertain(alone, 3)
    assert result["statistic"] == "entropy"
    assert result["sentences"] == most_uncertain(alone, 3, "entropy")[0]["sentences"]
    assert {s["mutual_information"] for s in result["sentences"]} == {0.0}
    with pytest.raises(LangevinError, match="expected several samples to rank by standard_deviation, got one"):
        most_uncertain(alone, 3, "standard_deviation")


def test_states_are_means_over_the_samples(classifier_run):
    run = Classifier(classifier_run)
    sentences = run.encode(["who was so very Homer ?", "bread", "where is Rome ?"]).sentences
    each = []
    for number in range(len(run.samples)):
        run.load(number)
        run.model.eval()
        with torch.no_grad():
            each.append(torch.cat([run.model.features(s[None], torch.tensor([len(s)])) for s in sentences]))
    assert torch.allclose(mean_states(run, sentences), torch.stack(each).mean(0), atol=1e-6)


