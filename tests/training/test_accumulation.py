"""A batch in pieces, one after the other, is the batch; what cannot be divided is refused."""

import pytest
import torch

from langevin.errors import LangevinError
from langevin.samplers import SGLD
from langevin.store.folder import RunFolder
from langevin.training.chains import start_chains
from langevin.training.session import resume, start
from tests.training.test_loop import Killed, fingerprint, kill_at

SETTINGS = ("layers=2", "dropout=0.3", "checkpoint_minutes=0", "clip=norm", "clip_norm=0.5")


def losses(folder):
    return [line.train_loss for line in RunFolder(folder).progress().history]


def test_pieces_give_the_curve_of_the_whole_batch(tiny, tmp_path):
    for pieces in (1, 3):
        start(tiny(*SETTINGS, f"accumulate={pieces}"), tmp_path / str(pieces)).run()
    assert len(losses(tmp_path / "1")) > 5
    assert losses(tmp_path / "3") == pytest.approx(losses(tmp_path / "1"), abs=1e-5)
    whole, pieces = (RunFolder(tmp_path / name).load_checkpoint()[0] for name in ("1", "3"))
    assert not torch.equal(whole["model.output.weight"], pieces["model.output.weight"])
    torch.testing.assert_close(pieces["carry.1.0"], whole["carry.1.0"], rtol=1e-3, atol=1e-4)


def test_killed_and_resumed_in_pieces_equals_uninterrupted(tiny, tmp_path):
    recipe = tiny(*SETTINGS, "accumulate=3")
    start(recipe, tmp_path / "whole").run()
    with pytest.raises(Killed):
        start(recipe, tmp_path / "cut").run(kill_at(13))
    resume(tmp_path / "cut").run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")


def test_a_minute_is_measured_in_pieces_too(tiny, tmp_path):
    wanted = tiny("accumulate=2", "minutes=5")
    trainer = start(wanted, tmp_path / "run")
    assert trainer.recipe.run.minutes is None
    assert 0 < trainer.recipe.run.epochs <= 2


@pytest.mark.parametrize("begin", [start, lambda recipe, out: start_chains(recipe, out, 2)])
def test_more_pieces_than_rows_are_refused(tiny, tmp_path, begin):
    with pytest.raises(LangevinError, match=r"expected at most 4 pieces of a batch.*accumulate = 5"):
        begin(tiny("accumulate=5"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_step_that_a_gradient_scaler_skips_draws_no_noise():
    """An overflow shows in scaled gradients only; the noise of the next step is that of the step
    left out."""
    weights = []
    for overflow in (False, True):
        weight = torch.nn.Parameter(torch.zeros(8))
        sampler = SGLD([weight], lr=0.1, num_data=10, seed=3)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for step in range(3 + overflow):
            loss = (weight - 1).square().mean() * (float("inf") if overflow and step == 1 else 1)
            sampler.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(sampler)
            scaler.update()
        assert sampler.param_groups[0]["steps_done"] == 3
        weights.append(weight.detach())
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-6)
