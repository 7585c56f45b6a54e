"""Samples on disk → arrays: each number against a direct computation."""

import numpy as np
import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior.diagnostics import load_arviz, project
from langevin.predict.draws import (
    HELD_OUT,
    Gradients,
    batch_losses,
    collect_draws,
    layer_virials,
    to_inference_data,
    trained,
    write_netcdf,
)
from langevin.store.folder import RunFolder
from langevin.tasks import open_run_task
from langevin.training.session import start


@pytest.fixture(scope="module")
def opened(finished_run):
    folder = RunFolder(finished_run)
    task = open_run_task(folder)
    return task, task.build_model(), folder.store().read()


def gather(opened, chains=None, **changes):
    task, model, samples = opened
    settings = {"split": "valid", "probes": 5, "gradients": Gradients(None, 1.0)} | changes
    return collect_draws(task, model, chains or [samples], lambda sample: sample.about["temperature"], **settings)


def test_every_array_equals_its_definition(opened):
    task, model, samples = opened
    draws = gather(opened)
    assert draws.steps.tolist() == [[s.step for s in samples]]
    before = None
    for number, sample in enumerate(samples):
        sample.load_into(model)
        log_probs = task.log_probs(model, "valid")
        assert draws.held_out[0, number] == pytest.approx(log_probs.double().mean().item())
        assert draws.probes[0, number] == pytest.approx(log_probs[list(draws.places)].double().numpy())
        weight = model.output.weight.detach().clone()
        assert draws.projections["output.weight"][0, number] == pytest.approx(project(weight, "output.weight"))
        if before is not None:
            moved = float((weight - before).norm() / weight.norm())
            assert draws.distances["output.weight"][0, number - 1] == pytest.approx(moved, rel=1e-5)
        before = weight
    assert sum(draws.sizes.values()) == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert next(iter(draws.functions())) == HELD_OUT
    assert len(draws.functions()) == 6


def test_virial_is_the_slope_of_the_potential_along_the_weights(tiny, tmp_path):
    """θ·∇U = d/ds U(s·θ) at s = 1, by central differences of the whole training loss.

    Random batches carry no state: with one, the gradient is cut at the window and is no slope of
    the loss.
    """
    trainer = start(tiny("batching=random"), tmp_path / "r")
    trainer.run()
    task, model, sample = trainer.task, trainer.model, trainer.store.read()[-1]
    felt = layer_virials(task, model, Gradients(None, 0.5), 0)
    sample.load_into(model)
    own = {name: p.detach().double().clone() for name, p in trained(model).items()}
    model.double()

    def potential(scale):
        with torch.no_grad():
            for name, p in trained(model).items():
                p.copy_(own[name] * scale)
            loss = sum(float(loss) for loss in batch_losses(task, model, None, 0)) / task.batches_per_epoch
        prior = sum(float((scale * w).square().sum()) for w in own.values()) / (2 * 0.5)
        return task.num_data * loss + prior

    slope = (potential(1 + 1e-4) - potential(1 - 1e-4)) / 2e-4
    assert sum(felt.values()) == pytest.approx(slope, rel=1e-4)


def test_some_batches_estimate_the_whole_gradient(opened):
    """Their starts move on from draw to draw and cover the epoch; their mean is near the loss of
    the epoch."""
    task, model, samples = opened
    samples[-1].load_into(model)
    with torch.no_grad():
        whole = np.mean([float(loss) for loss in batch_losses(task, model, None, 0)])
        some = [float(loss) for draw in range(40) for loss in batch_losses(task, model, 4, draw)]
    assert len(some) == 160
    assert np.mean(some) == pytest.approx(whole, rel=0.05)
    assert gather(opened, gradients=Gradients(0, 1.0)).virials == {}
    assert set(gather(opened, gradients=Gradients(2, 1.0)).virials) == set(gather(opened).sizes)


def test_unequal_chains_are_cut_to_their_last_draws(opened, tiny, tmp_path):
    trainer = start(tiny("seed=1", "epochs=2.5"), tmp_path / "longer")
    trainer.run()
    longer = trainer.store.read()
    draws = gather(opened, [opened[2], longer], gradients=Gradients(0, None))
    assert draws.steps.shape == (2, 4)
    assert draws.steps[1].tolist() == [s.step for s in longer[-4:]]


def test_too_few_samples_are_refused(opened):
    with pytest.raises(LangevinError, match="at least 4 samples of each chain to diagnose, got 1"):
        gather(opened, [opened[2][:1]])


def test_inference_data_and_file_hold_the_draws(opened, tmp_path):
    draws = gather(opened, gradients=Gradients(0, None))
    data = to_inference_data(draws, {"runs": "night"})
    assert data.posterior["output.weight"].values == pytest.approx(draws.projections["output.weight"])
    assert data.log_likelihood["probes"].values == pytest.approx(draws.probes)
    assert data.sample_stats["held_out"].values == pytest.approx(draws.held_out)
    write_netcdf(draws, tmp_path / "draws.nc", {"runs": "night"})
    read = load_arviz().from_netcdf(str(tmp_path / "draws.nc"))
    assert read.log_likelihood["probes"].values == pytest.approx(draws.probes)
    assert read.attrs["runs"] == "night"
    with pytest.raises(LangevinError, match="cannot write"):
        write_netcdf(draws, tmp_path / "absent" / "draws.nc", {})
