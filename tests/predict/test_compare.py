"""Models beside each other: numbers equal to evaluating each alone, costs counted."""

import json

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior.average import members_of
from langevin.posterior.swag import weight_average
from langevin.predict.compare import answers
from langevin.store.folder import RunFolder
from langevin.store.weights import load_weights
from langevin.posterior.selection import Selection
from langevin.predict.load import open_posterior
from langevin.tasks import open_run_task
from langevin.training.session import start


def test_rows_equal_evaluating_each_alone(finished_run):
    chosen = Selection("backward", 3)
    plain = open_posterior(finished_run, chosen).evaluate(middle=True, student=finished_run)
    rows = {row.model: row for row in plain.models}
    task = open_run_task(RunFolder(finished_run))
    model = task.build_model()
    load_weights(model, weight_average(RunFolder(finished_run).store().select("backward", 3)), "the mean")
    middle = task.scores(task.log_probs(model, "test"), "test").nll
    assert rows["weights averaged"].scores.nll == pytest.approx(middle)
    assert rows["average of 3"].scores.nll == plain.averaged.nll
    assert rows["mean of single samples"].scores.nll == pytest.approx(sum(e.scores.nll for e in plain.each) / 3)
    everything = open_posterior(finished_run).evaluate().averaged.nll
    assert rows["student night"].scores.nll == pytest.approx(everything)
    assert [row.passes for row in rows.values()] == [1, 1, 3, 1, 4]
    gap = rows["mean of single samples"].scores.nll - rows["average of 3"].scores.nll
    closed = (rows["mean of single samples"].scores.nll - middle) / gap
    assert rows["weights averaged"].gap_closed == pytest.approx(closed)
    assert rows["average of 3"].gap_closed == pytest.approx(1)
    assert rows["average of 3"].seconds > rows["last sample"].seconds > 0


def test_answers_are_those_of_the_averaged_distribution(finished_run):
    """Over the whole split at once: state is carried, probabilities are averaged before the answer
    is taken."""
    task = open_run_task(RunFolder(finished_run))
    models = members_of(task.build_model(), RunFolder(finished_run).store().read())
    confidence, correct, _ = answers(task, models, "valid")
    streams = task.evaluated["valid"].streams.long()
    with torch.no_grad():
        p = sum(torch.softmax(model(streams[:, :-1])[0], -1) for model in models) / len(models)
    best = p.max(-1)
    assert confidence.mean().item() == pytest.approx(best.values.mean().item(), rel=1e-5)
    assert correct.double().mean().item() == (best.indices == streams[:, 1:]).double().mean().item()


def test_the_command(cli, finished_run):
    code, printed, _ = cli("evaluate", finished_run, "--weight-average")
    assert code == 0
    assert "weights averaged" in printed
    assert "gap closed" in printed
    code, printed, _ = cli("evaluate", finished_run, "--student", finished_run, "--json", "--split", "valid")
    assert code == 0
    assert len(json.loads(printed)["models"]) == 5


def test_a_run_of_other_words_is_no_student(cli, finished_run, tiny, tmp_path):
    other = tmp_path / "other"
    start(tiny("level=word", "epochs=1", "burn_in=0", "sample_every=1"), other).run()
    code, _, messages = cli("evaluate", finished_run, "--student", other)
    assert code == 2
    assert "vocabulary" in messages


def test_masks_are_not_compared(finished_run):
    with pytest.raises(LangevinError, match="got masks of Monte-Carlo dropout"):
        open_posterior(finished_run).evaluate(masks=3, middle=True)
