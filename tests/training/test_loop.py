"""The loop: resume is exact wherever it was cut, schedules are functions of the step, bad losses stop it."""

import json
import math
import shutil

import pytest
import torch

from langevin.errors import LangevinError
from langevin.recipe import Run
from langevin.recipe.schedule import Pace
from langevin.store.folder import RunFolder
from langevin.training.clipping import Clipper
from langevin.errors import Interrupted
from langevin.tasks import open_run_task
from langevin.training.session import resume, start


def fingerprint(folder):
    """Everything that a run leaves behind, without times."""
    run = RunFolder(folder)
    tensors, progress = run.load_checkpoint()
    progress = {k: v for k, v in progress.to_dict().items() if k != "seconds"}
    samples = [(s.step, s.sha256, s.about) for s in run.store().read()]
    stored = {name: torch.atleast_1d(tensor).view(torch.uint8).tolist() for name, tensor in tensors.items()}
    return json.dumps(progress), samples, stored


class Killed(BaseException):
    """Like SIGKILL: nothing is saved on the way out."""


def kill_at(step):
    def on_step(trainer):
        if trainer.step == step:
            raise Killed

    return on_step


SETTINGS = {
    "psgld": [],
    "sgld": ["name=sgld", "lr=0.5"],
    "sghmc": ["name=sghmc", "lr=0.1"],
    "sgnht": ["name=sgnht", "lr=0.1"],
    "santa": ["name=santa", "lr=1e-3"],
    "dropout and clipping": ["dropout=0.5", "layers=2", "clip=norm", "clip_norm=0.5"],
    "random": ["batching=random"],
    "bfloat16": ["precision=bfloat16"],
    "cyclical": ["lr_schedule=cyclical", "cycle=0.5", "cycle_explore=0.5", "burn_in_temperature=0"],
    "running means": ["sample=mean"],
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_killed_and_resumed_equals_uninterrupted(tiny, tmp_path, setting):
    recipe = tiny("checkpoint_minutes=0", *SETTINGS[setting])
    start(recipe, tmp_path / "whole").run()
    trainer = start(recipe, tmp_path / "cut")
    middle = trainer.pace.burn_in + round(trainer.pace.interval) + 2
    for step in (3, middle, trainer.pace.total - 1):
        with pytest.raises(Killed):
            trainer.run(kill_at(step))
        trainer = resume(tmp_path / "cut")
    trainer.run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")


def test_killed_before_the_first_checkpoint_and_after_a_sample(tiny, tmp_path):
    recipe = tiny("checkpoint_minutes=1000")
    start(recipe, tmp_path / "whole").run()
    trainer = start(recipe, tmp_path / "cut")
    with pytest.raises(Killed):
        trainer.run(kill_at(2))
    trainer = resume(tmp_path / "cut")
    save = trainer.save

    def die_instead_of_saving():
        if len(trainer.store) == 2:
            raise Killed  # the sample is on disk, the checkpoint is older
        save()

    trainer.save = die_instead_of_saving
    with pytest.raises(Killed):
        trainer.run()
    resume(tmp_path / "cut").run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")


def test_interrupted_while_validating(tiny, tmp_path):
    start(tiny(), tmp_path / "whole").run()
    trainer = start(tiny(), tmp_path / "cut")
    validate = trainer.task.log_probs

    def interrupt(model, split, shard):
        assert trainer.evaluating
        if trainer.step > trainer.pace.burn_in:
            raise KeyboardInterrupt
        return validate(model, split)

    trainer.task.log_probs = interrupt
    with pytest.raises(Interrupted):
        trainer.run()
    resume(tmp_path / "cut").run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")


def test_asked_to_stop(tiny, tmp_path):
    trainer = start(tiny(), tmp_path / "r")
    with pytest.raises(Interrupted):
        trainer.run(stop=lambda: trainer.step == 5)
    assert RunFolder(tmp_path / "r").progress().step == 5


def test_same_seed_same_samples_and_another_seed_others(tiny, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        start(tiny(f"seed={seed}"), tmp_path / name).run()
    a, b, c = ([s.sha256 for s in RunFolder(tmp_path / n).store().read()] for n in "abc")
    assert a == b
    assert not set(a) & set(c)


def test_samples_are_taken_on_schedule(tiny, tmp_path):
    trainer = start(tiny(), tmp_path / "r")
    trainer.run()
    assert len(trainer.store) == 4 == trainer.running.count
    epochs = [sample.about["epoch"] for sample in trainer.store.read()]
    assert epochs == pytest.approx([1.25, 1.5, 1.75, 2.0], abs=0.02)


def test_running_average_is_that_of_the_stored_samples(finished_run):
    from langevin.tasks.scoring import score_samples

    run = RunFolder(finished_run)
    task = open_run_task(run)
    result = score_samples(task, task.build_model(), run.store().read(), "valid")
    assert math.isclose(result.averaged.scores.nll, run.progress().history[-1].average["nll"], rel_tol=1e-6)
    assert result.last.scores.nll == result.each[-1].scores.nll
    mean_nll = sum(e.scores.nll for e in result.each) / len(result.each)
    assert result.averaged.scores.nll < mean_nll  # Jensen


def test_early_stopping_watches_the_running_average(tiny, tmp_path):
    far_too_fast = tiny("patience=1", "epochs=6", "lr=0.5", "clip=norm")  # it gets worse
    trainer = start(far_too_fast, tmp_path / "r")
    trainer.run()
    scores = [line.average["nll"] for line in trainer.history if line.average]
    assert trainer.stopped_early
    assert trainer.step < trainer.pace.total
    assert scores[-1] > min(scores)
    assert RunFolder(tmp_path / "r").progress().finished
    assert resume(tmp_path / "r").finished


def test_infinite_loss_stops_and_keeps_what_is_good(tiny, tmp_path):
    trainer = start(tiny(), tmp_path / "r")
    loss = trainer.task.loss

    def explode(model, epoch, index, carry, shard):
        value, after = loss(model, epoch, index, carry)
        return (value * float("nan") if trainer.step == trainer.pace.total - 1 else value), after

    trainer.task.loss = explode
    with pytest.raises(LangevinError, match=f"nan at step {trainer.pace.total - 1}"):
        trainer.run()
    run = RunFolder(tmp_path / "r")
    assert len(run.store()) == 3
    assert all(torch.isfinite(t).all() for t in run.load_checkpoint()[0].values())


def test_learning_lowers_the_loss(finished_run):
    history = RunFolder(finished_run).progress().history
    assert history[-1].valid["nll"] < history[0].valid["nll"] < math.log(256)


def test_changed_text_is_refused(tiny, tmp_path, text_file):
    path = tmp_path / "own.txt"
    shutil.copy(text_file, path)
    start(tiny(f"corpus={path}"), tmp_path / "r").run()
    path.write_text(path.read_text() + "More snow.")
    with pytest.raises(LangevinError, match="changed since"):
        resume(tmp_path / "r")


def test_existing_run_is_not_overwritten_unasked(tiny, tmp_path, finished_run):
    with pytest.raises(LangevinError, match="already holds a run"):
        start(tiny(), finished_run)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(LangevinError, match="not an empty folder"):
            start(tiny(), tmp_path / "full", overwrite=overwrite)
    start(tiny(), tmp_path / "r")
    assert start(tiny("hidden=4"), tmp_path / "r", overwrite=True).recipe.model.hidden == 4


def test_burn_in_has_its_own_temperature():
    pace = Pace(Run(epochs=4, burn_in=2, burn_in_temperature=0), 0.1, 1.0, 10)
    assert [pace.temperature_at(s) for s in (0, 19, 20, 24, 35)] == [0, 0, 1, 1, 1]
    assert Pace(Run(epochs=4, burn_in=2), 0.1, 0.3, 10).temperature_at(0) == 0.3


def test_cycles_explore_without_noise_and_without_samples():
    run = Run(epochs=6, burn_in=2, lr_schedule="cyclical", cycle=2, cycle_explore=0.5, sample_every=0.5)
    pace = Pace(run, 0.1, 1.0, 10)
    assert pace.lr_at(5) == 0.1
    assert pace.lr_at(20) == pytest.approx(0.1)
    assert pace.lr_at(30) == pytest.approx(0.05)
    assert pace.temperature_at(25) == 0
    assert pace.temperature_at(35) == 1
    assert [s for s in range(61) if pace.is_sample(s)] == [35, 40, 55, 60]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_last_step_of_a_short_cycle_is_a_sample(steps):
    run = Run(epochs=1, burn_in=0, lr_schedule="cyclical", cycle=1, cycle_explore=0.85, sample_every=0.2)
    assert [s for s in range(steps + 1) if Pace(run, 0.1, 0.0, steps).is_sample(s)] == [steps]


def test_step_decay_follows_zaremba():
    run = Run(epochs=8, burn_in=1, lr_schedule="step", decay_after=4, decay_every=1, decay_factor=0.5)
    pace = Pace(run, 1.0, 0.0, 10)
    assert [pace.lr_at(10 * epoch) for epoch in range(7)] == [1, 1, 1, 1, 0.5, 0.25, 0.125]


@pytest.mark.parametrize(
    ("mode", "size", "after", "acted"),
    [("none", 10, 10, 0), ("norm", 10, 5, 1), ("norm", 3, 3, 0), ("always", 10, 5, 1), ("always", 3, 5, 1)],
)
def test_clipping(mode, size, after, acted):
    weight = torch.zeros(4, requires_grad=True)
    weight.grad = torch.full((4,), size / 2)
    clipper = Clipper(mode, 5.0)
    clipper.clip_([weight])
    assert weight.grad.norm().item() == pytest.approx(after)
    assert clipper.acted == acted


def test_missing_device_is_refused(tiny, tmp_path):
    with pytest.raises(LangevinError, match="'nonsense' is not available"):
        start(tiny("device=nonsense"), tmp_path / "r")
    assert not (tmp_path / "r").exists()


def interrupted_after(trainer, samples):
    with pytest.raises(Interrupted):
        trainer.run(stop=lambda: len(trainer.store) == samples)
