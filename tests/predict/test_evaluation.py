"""Did sampling help? The best single sample by validation, and gains with their errors."""

from dataclasses import replace

import pytest
import torch

import langevin
from langevin.posterior.average import LogMean
from langevin.posterior.mixture import paired_gain
from langevin.predict.evaluation import best_by_validation
from langevin.predict.load import open_posterior
from langevin.posterior.selection import Selection
from langevin.report.tables import compared, gain_in_words
from langevin.store.checkpoint import save_log_probs
from langevin.store.folder import RunFolder
from langevin.store.validation import validation_of
from langevin.training.session import start
from tests.conftest import SET


def nll_of_each(posterior):
    """−log p of each item of the test split by each sample, one by one."""
    task, found = posterior.data, []
    for sample in RunFolder(posterior.path).store().read():
        sample.load_into(posterior.model)
        found.append(-task.observed(task.log_probs(posterior.model, "test"), "test"))
    return found


def test_the_best_single_sample_is_that_of_validation_and_may_stand_outside(finished_run):
    posterior = open_posterior(finished_run, Selection("backward", 2))
    history = {line.step: line.valid["nll"] for line in RunFolder(finished_run).progress().history}
    samples = RunFolder(finished_run).store().samples
    expected = min(samples, key=lambda sample: history[sample.step])
    assert best_by_validation(posterior.opened).step == expected.step
    found, each = posterior.evaluate(), nll_of_each(posterior)
    assert found.best_single.nll == pytest.approx(each[samples.index(expected)].mean().item())
    assert found.last.nll == pytest.approx(each[-1].mean().item())


def test_gains_are_paired_over_the_sentences(classifier_run):
    posterior = langevin.load(classifier_run)
    found, task, mean = posterior.evaluate(), posterior.data, LogMean()
    for sample in posterior.draws:
        sample.load_into(posterior.model)
        mean.add(task.log_probs(posterior.model, "test"))
    difference = nll_of_each(posterior)[-1] + task.observed(mean.value(), "test")
    assert found.gain_over_last == pytest.approx(difference.mean().item(), abs=1e-6)
    assert found.gain_over_last_error == pytest.approx(
        difference.std().item() / len(difference) ** 0.5, rel=1e-4)
    assert found.gain == pytest.approx(found.best_single.nll - found.averaged.nll, abs=1e-6)


def test_items_that_stand_alone_need_no_blocks():
    noise = torch.randn(300, generator=torch.Generator().manual_seed(1))
    assert paired_gain(noise, noise + 1)[1] is None  # too short a text
    gain, error = paired_gain(torch.zeros(300), noise, in_order=False)
    assert gain == pytest.approx(noise.mean().item(), abs=1e-6)
    assert error == pytest.approx(noise.std().item() / 300**0.5, rel=1e-5)


def test_one_sample_has_no_gain(finished_run):
    found = open_posterior(finished_run, Selection("backward", 1)).evaluate()
    assert (found.gain, found.gain_over_last) == (None, None)
    assert gain_in_words(found) == "One sample: there is nothing to average."


@pytest.mark.parametrize(
    ("gain", "error", "text"),
    [
        (0.2, 0.05, "better than X by 0.2000 ± 0.0500 nats per token"),
        (-0.2, 0.05, "worse than X by 0.2000 ± 0.0500 nats per token"),
        (0.05, 0.05, "as good as X to within the error (better by 0.0500 ± 0.0500 nats per token)"),
        (0.2, None, "better than X by 0.2000 nats per token (too few for an error bar)"),
    ],
)
def test_in_words(gain, error, text):
    assert compared(gain, error, "X", "token") == text


def test_the_sentence_names_both_rivals_and_the_choice(finished_run):
    found = langevin.load(finished_run).evaluate("valid")
    found = replace(found, gain=0.1, gain_error=0.01, gain_over_last=0.2, gain_over_last_error=0.01)
    assert gain_in_words(found) == (
        "On valid, the average of 4 samples is better than the best single sample, chosen on this "
        "split, by 0.1000 ± 0.0100 nats per token and better than the last by 0.2000 ± 0.0100 nats "
        "per token.")


def test_an_interrupted_run_says_how_to_go_on(tiny, tmp_path, cli):
    trainer = start(tiny(), tmp_path / "run")
    halfway = trainer.pace.total * 3 // 4
    with pytest.raises(langevin.errors.Interrupted):
        trainer.run(stop=lambda: trainer.step >= halfway)
    code, _, messages = cli("evaluate", tmp_path / "run")
    assert code == 0
    assert f"go on with: langevin resume {tmp_path / 'run'}" in messages


def test_what_training_kept_of_validation_is_not_computed_again(text_file, tmp_path, cli, monkeypatch):
    code, _, said = cli("train", "--text", text_file, "--out", tmp_path / "run", *SET, "--quiet")
    assert code == 0, said
    posterior = open_posterior(tmp_path / "run")
    kept = [validation_of(sample.path) for sample in posterior.draws]
    fresh = posterior.evaluate("valid")
    for path in kept:
        path.unlink(missing_ok=True)
    again = open_posterior(tmp_path / "run").evaluate("valid")
    assert again.averaged.nll == pytest.approx(fresh.averaged.nll, rel=1e-6)
    for path, sample in zip(kept, posterior.draws, strict=True):
        sample.load_into(posterior.model)
        save_log_probs(path, posterior.data.log_probs(posterior.model, "valid"))
    monkeypatch.setattr(posterior.data, "log_probs", None)  # nobody calls it
    assert posterior.evaluate("valid").averaged.nll == pytest.approx(fresh.averaged.nll, rel=1e-6)
