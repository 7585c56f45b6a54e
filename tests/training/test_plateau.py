"""Runs at a full rate that falls in the end: exact on resume, chosen from the last, stopped where
validation turns."""

import math
from dataclasses import replace

import pytest
import torch

from langevin.posterior.average import LogMean
from langevin.posterior.scores import Scores
from langevin.recipe import load_recipe
from langevin.store.check import check_folder
from langevin.store.folder import RunFolder
from langevin.store.replacement import remove
from langevin.training.loop import Trainer
from langevin.tasks import open_run_task
from langevin.training.session import resume, start
from tests.conftest import TINY
from tests.training.test_loop import Killed, fingerprint, kill_at

PLATEAU = [key for key in TINY if key.partition("=")[0] not in
           ("burn_in", "sample_every", "burn_in_temperature", "patience", "lr_schedule", "sample")]
PLATEAU += ["lr_schedule=plateau", "sample=mean", "temperature=0"]


@pytest.fixture
def falling(text_file):
    """Builds a small recipe with a plateau; arguments override its keys."""
    return lambda *overrides: load_recipe("text", [f"corpus={text_file}", *PLATEAU, *overrides])


def test_killed_and_resumed_equals_uninterrupted(falling, tmp_path):
    recipe = falling("checkpoint_minutes=0")
    start(recipe, tmp_path / "whole").run()
    trainer = start(recipe, tmp_path / "cut")
    pace = trainer.pace
    for step in (3, pace.hold - 1, pace.hold, pace.hold + 3, pace.total - 1):
        with pytest.raises(Killed):
            trainer.run(kill_at(step))
        trainer = resume(tmp_path / "cut")
    trainer.run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")
    whole, cut = (RunFolder(tmp_path / name).choice() for name in ("whole", "cut"))
    assert whole == cut is not None


def test_a_sample_is_the_running_mean_of_the_weights(falling, tmp_path):
    """n ← n + 1;   μ ← μ + max(.01, 1/n)·(θ − μ), followed by hand in double precision."""
    trainer = start(falling(), tmp_path / "r")
    mean = torch.zeros(0)

    def follow(trainer: Trainer) -> None:
        nonlocal mean
        weight = trainer.model.output.weight.detach().double()
        share = max(0.01, 1 / trainer.step)
        mean = weight.clone() if trainer.step == 1 else mean + share * (weight - mean)

    trainer.run(follow)
    last = trainer.store.samples[-1]
    assert torch.allclose(last.load()["output.weight"].double(), mean, atol=1e-5)
    assert not torch.allclose(mean, trainer.model.output.weight.double(), atol=1e-3)
    assert last.about["running_mean"] is True


def test_the_last_samples_are_chosen_from_what_training_computed(falling, tmp_path, monkeypatch):
    trainer = start(falling(), tmp_path / "r")
    trainer.run()
    folder = RunFolder(tmp_path / "r")
    task, choice = open_run_task(folder), folder.choice()
    model, means, scores = task.build_model(), LogMean(), []
    for sample in reversed(folder.store().samples):
        sample.load_into(model)
        means.add(task.log_probs(model, "valid"))
        scores.append(task.scores(means.value(), "valid").nll)
    assert choice.how == "backward"
    assert choice.samples == 1 + scores.index(min(scores))
    assert choice.score == pytest.approx(min(scores), rel=1e-6)
    assert len(folder.store()) == len(trainer.pace.places)


def test_places_follow_from_the_epochs(falling, tmp_path):
    trainer = start(falling("epochs=4"), tmp_path / "r")
    pace = trainer.pace
    assert (pace.hold, pace.total) == (round(pace.total / 2), 4 * pace.steps_per_epoch)
    assert [pace.lr_at(step) / pace.base_lr for step in (0, pace.hold, pace.total)] == pytest.approx([1, 1, 0.3])
    fractions = [step / pace.total for step in sorted(pace.places)]
    assert fractions == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1], abs=0.01)
    shorter = start(falling("epochs=3"), tmp_path / "s").pace
    grid = [[s for s in range(p.hold) if p.is_record(s) and s not in p.places] for p in (pace, shorter)]
    assert grid[0][: len(grid[1])] == grid[1] != grid[0]
    assert grid[1][0] == pace.steps_per_epoch


def test_it_stops_where_validation_turns_and_resumes_exactly(falling, tmp_path):
    recipe = falling("epochs=40", "hidden=32", "lr=0.05", "checkpoint_minutes=0", "parts=[30,40,30]")
    def spoil(trainer: Trainer) -> Trainer:
        """Validation that gets worse after three epochs, whatever the text."""
        task, honest = trainer.task, trainer.task.scores

        def scores(log_probs: torch.Tensor, split: str) -> Scores:
            found = honest(log_probs, split)
            worse = max(0.0, trainer.step / task.batches_per_epoch - 3)
            return replace(found, nll=1 / (1 + trainer.step) + worse)

        task.scores = scores  # type: ignore[method-assign]
        return trainer

    whole = spoil(start(recipe, tmp_path / "whole"))
    whole.run()
    assert 3 < whole.pace.turned / whole.task.batches_per_epoch < 5
    assert whole.finished
    assert whole.step < 10 * whole.task.batches_per_epoch
    assert len(whole.store) >= 2
    cut = spoil(start(recipe, tmp_path / "cut"))
    with pytest.raises(Killed):
        cut.run(kill_at(whole.pace.turned + 2))
    spoil(resume(tmp_path / "cut")).run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")


def test_what_validation_said_lies_beside_the_samples(falling, tmp_path):
    start(falling(), tmp_path / "r").run()
    folder = RunFolder(tmp_path / "r")
    kept = sorted((folder.path / "samples").glob("*.valid.safetensors"))
    assert len(kept) == len(folder.store())
    assert all(finding.sound for finding in check_folder(folder.path))
    folder.store().forget_after(folder.store().samples[0].step)
    assert len(list((folder.path / "samples").glob("*.valid.safetensors"))) == 1
    remove(folder.path)
    assert not folder.path.exists()


def test_too_much_to_keep_is_not_kept(falling, tmp_path, monkeypatch):
    monkeypatch.setattr("langevin.training.loop.LARGEST_KEPT", 10)
    trainer = start(falling(), tmp_path / "r")
    trainer.run()
    assert trainer.finished
    assert not list((tmp_path / "r" / "samples").glob("*.valid.safetensors"))
    assert RunFolder(tmp_path / "r").choice() is None


def test_constant_runs_write_what_they_always_wrote(tiny, tmp_path):
    start(tiny(), tmp_path / "r").run()
    names = {path.name for path in (tmp_path / "r").rglob("*")}
    assert not any(name.endswith(".valid.safetensors") or name == "plateau.safetensors" for name in names)
    assert math.isclose(RunFolder(tmp_path / "r").recipe.run.burn_in, 1)
