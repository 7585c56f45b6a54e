"""Models beside each other: numbers equal to evaluating each alone, costs counted."""

import json
import shutil

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior.average import members_of
from langevin.posterior.swag import weight_average
from langevin.predict.compare import add_models, answers
from langevin.store.folder import RunFolder
from langevin.store.weights import load_weights
from langevin.posterior.selection import Selection
from langevin.predict.evaluation import evaluate_run
from langevin.tasks import open_run_task
from langevin.training.session import start


def test_rows_equal_evaluating_each_alone(finished_run):
    chosen = Selection("backward", 3)
    plain = evaluate_run(finished_run, "test", chosen)
    rows = {row["model"]: row for row in add_models(plain, chosen, student=finished_run)["models"]}
    task = open_run_task(RunFolder(finished_run))
    model = task.build_model()
    load_weights(model, weight_average(RunFolder(finished_run).store().select("backward", 3)), "the mean")
    middle = task.metrics(task.log_probs(model, "test"), "test")["nll"]
    assert rows["weights averaged"]["nll"] == pytest.approx(middle)
    assert rows["average of 3"]["nll"] == plain["averaged"]["nll"]
    assert rows["mean of single samples"]["nll"] == pytest.approx(sum(e["nll"] for e in plain["each"]) / 3)
    everything = evaluate_run(finished_run, "test", Selection())["averaged"]["nll"]
    assert rows["student night"]["nll"] == pytest.approx(everything)
    assert [row["passes"] for row in rows.values()] == [1, 1, 3, 1, 4]
    gap = rows["mean of single samples"]["nll"] - rows["average of 3"]["nll"]
    closed = (rows["mean of single samples"]["nll"] - middle) / gap
    assert rows["weights averaged"]["gap_closed"] == pytest.approx(closed)
    assert rows["average of 3"]["gap_closed"] == pytest.approx(1)
    assert rows["average of 3"]["seconds_per_1000"] > rows["last sample"]["seconds_per_1000"] > 0


def test_answers_are_those_of_the_averaged_distribution(finished_run):
    """Over the whole split at once: state is carried, probabilities are averaged before the answer is taken."""
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


def test_masks_are_not_compared(finished_run, tmp_path):
    result = {"mc_dropout": 3, "run": str(shutil.copytree(finished_run, tmp_path / "r"))}
    with pytest.raises(LangevinError, match="Monte-Carlo dropout"):
        add_models(result, Selection())
