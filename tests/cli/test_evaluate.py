import json
import shutil

import pytest
import torch

import langevin
from langevin.cli.outcome import choose_collection
from langevin.errors import LangevinError
from langevin.store.folder import RunFolder
from langevin.store.samples import choose
from langevin.tasks.scoring import CollectionSums, score_samples
from langevin.posterior.selection import Selection
from langevin.tasks import open_run_task
from langevin.training.session import start
from paper.record import record
from tests.conftest import SET
from langevin.tasks.choice import choosing
from langevin.posterior.selection import resolve


def test_curves_equal_evaluating_each_collection(finished_run):
    run = RunFolder(finished_run)
    task = open_run_task(run)
    model, samples = task.build_model(), run.store().read()
    curves = score_samples(task, model, samples, "test", curve=True).curve
    for how, scores in curves.items():
        for n, score in enumerate(scores, 1):
            direct = score_samples(task, model, choose(samples, how, n), "test").averaged.scores.nll
            assert score == pytest.approx(direct, rel=1e-6)


def test_no_sample_is_run_twice(finished_run):
    run = RunFolder(finished_run)
    task = open_run_task(run)
    calls = []
    log_probs = task.log_probs
    task.log_probs = lambda model, split, seed: calls.append(split) or log_probs(model, split)
    score_samples(task, task.build_model(), run.store().read(), "test", curve=True)
    assert len(calls) == 4


def test_two_samples_where_averaging_logs_differs(finished_run):
    task = open_run_task(RunFolder(finished_run))
    kept = [torch.log(torch.tensor([0.5, 0.9])), torch.log(torch.tensor([0.9, 0.1]))]
    curves = CollectionSums(kept).curves(task, "test")
    expected = -(torch.log(torch.tensor([0.7, 0.5]))).mean().item()
    assert curves["forward"][1] == pytest.approx(expected)
    assert abs(expected + torch.stack(kept).mean().item()) > 0.1


def test_recorded_numbers_choose_on_validation(finished_run):
    numbers = record(finished_run)
    chosen, valid = numbers["chosen"], numbers["valid"]["curve"]
    assert chosen["valid"] == min(min(scores) for scores in valid.values())
    assert chosen["test"] == numbers["test"]["curve"][chosen["select"]][chosen["samples"] - 1]
    json.dumps(numbers)
    assert None not in [*numbers["valid"].values(), *numbers["test"].values()], "left out, not empty"


def test_unfinished_runs_are_not_recorded(paper, tiny, tmp_path):
    start(tiny(), tmp_path / "r").save()
    code, _, messages = paper("record", tmp_path / "r", "--out", tmp_path / "x.json")
    assert code == 2
    assert "finished run" in messages


@pytest.fixture
def eight(cli, text_file, tmp_path):
    """A run of eight samples, trained on the command line, and what that printed."""
    code, printed, _ = cli("train", "--text", text_file, "--out", tmp_path / "run", *SET, "--set", "sample_every=0.125",
                           "--set", "lr=0.02", "--json")
    assert code == 0
    return tmp_path / "run", json.loads(printed)["collection"]


def test_validation_chooses_at_least_four_samples_and_once(eight, monkeypatch):
    run, chosen = eight
    curves = record(run)["valid"]["curve"]
    allowed = {(how, n): score for how, scores in curves.items() for n, score in enumerate(scores, 1) if n >= 4}
    assert chosen["score"] == min(allowed.values()) == allowed[chosen["how"], chosen["samples"]]
    # remembered: nobody is asked to choose
    again = resolve(RunFolder(run), Selection("best")).samples
    assert again == RunFolder(run).store().select(chosen["how"], chosen["samples"])
    with pytest.raises(LangevinError, match="best chooses how many samples by itself, got 2"):
        resolve(RunFolder(run), Selection("best", 2))
    # other samples
    with pytest.raises(LangevinError, match="expected a choice that validation made"):
        resolve(RunFolder(run), Selection("best", discard=1))


def test_a_choice_among_some_samples_is_not_remembered(eight):
    run, chosen = eight
    before = RunFolder(run).choice()
    resolve(RunFolder(run), Selection("best", discard=3), choosing())
    assert RunFolder(run).choice() == before
    (run / "collection.json").write_text('{"how": "backward"')  # cut off
    with pytest.raises(LangevinError, match=r"collection\.json.*delete it, and the choice is made"):
        resolve(RunFolder(run))
    (run / "collection.json").unlink()
    assert resolve(RunFolder(run)).how == "thinned"
    again = resolve(RunFolder(run), Selection("best"), choosing()).samples
    assert len(again) == chosen["samples"]
    assert RunFolder(run).choice() == before


def test_what_is_about_the_whole_run_takes_all_samples(cli, eight):
    run, _ = eight
    assert {len(curve) for curve in json.loads(cli("evaluate", run, "--curve", "--json")[1])["curve"].values()} == {8}
    code, printed, _ = cli("evaluate", run)
    assert code == 0
    assert "chosen by validation: " in printed
    assert "On test, the average of" in printed


def test_commands_that_are_not_told_average_what_validation_chose(cli, eight):
    run, chosen = eight
    assert chosen["samples"] < 8
    numbers = json.loads(cli("evaluate", run, "--json")[1])
    assert (numbers["how"], numbers["samples"]) == ("best", chosen["samples"])
    same = json.loads(cli("evaluate", run, "--select", chosen["how"], "--samples", chosen["samples"], "--json")[1])
    assert numbers["averaged"] == same["averaged"]
    for told, samples in ((["--select", "thinned"], 8), (["--samples", "3"], 3), (["--discard", "2"], 6)):
        numbers = json.loads(cli("evaluate", run, *told, "--json")[1])
        assert (numbers["how"], numbers["samples"]) == ("thinned", samples)
    assert json.loads(cli("generate", run, "--length", "1", "--json")[1])["samples"] == chosen["samples"]


def test_so_does_load_without_the_data(eight, monkeypatch):
    run, chosen = eight
    load = langevin.load  # its module has to be there before what it must not call is taken away
    (run.parent / "text.txt").unlink(missing_ok=True)
    assert len(load(run)) == chosen["samples"]
    assert len(load(run, select="thinned")) == 8
    with pytest.raises(LangevinError, match="best chooses how many samples by itself, got 2"):
        load(run, select="best", samples=2)
    # no longer the samples of the choice
    RunFolder(run).store().forget_after(RunFolder(run).store().samples[-2].step)
    with pytest.raises(LangevinError, match="is not listed as the checkpoint knows it"):
        load(run)
    assert len(load(run, skip_damaged=True)) == 7


def test_classifiers_average_all_their_samples(classifier_run, tmp_path):
    run = RunFolder(shutil.copytree(classifier_run, tmp_path / "run"))
    assert choose_collection(run, quiet=True) is None
    resolve(run, Selection("best"), choosing())  # somebody asked for it once
    assert run.choice()
    assert resolve(run).how == "thinned"


def test_monte_carlo_dropout(cli, word_run, finished_run):
    code, printed, _ = cli("evaluate", word_run, "--mc-dropout", "6", "--json")
    assert code == 0
    masked = json.loads(printed)
    assert masked["samples"] == 6
    assert len({each["scores"]["nll"] for each in masked["each"]}) == 6
    plain = json.loads(cli("evaluate", word_run, "--json")[1])
    assert masked["each"][0]["scores"]["nll"] != plain["last"]["nll"]
    code, _, messages = cli("evaluate", finished_run, "--mc-dropout", "3")
    assert code == 2
    assert "trained with dropout" in messages
