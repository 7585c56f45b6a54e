"""temperature = "auto": chosen on validation by pilots that share their start."""

import math

import pytest

from langevin.errors import LangevinError
from langevin.runfolder import RunFolder
from langevin.tune import GRID, pilot_recipe, with_chosen_temperature
from langevin.workflow import start

LONG = ("epochs=20", "temperature=auto")


def test_the_best_of_the_grid_is_taken_and_told(tiny, tmp_path):
    steps = []
    recipe, about = with_chosen_temperature(tiny(*LONG), tmp_path / "run", lambda t: steps.append(t.step))
    choice = about["temperature_choice"]
    assert recipe.sampler.temperature == choice["chosen"] == float(
        min(choice["valid_nll"], key=lambda t: choice["valid_nll"][t])
    )
    assert len(choice["valid_nll"]) == len(GRID)
    assert len(set(choice["valid_nll"].values())) > 1
    assert all(math.isfinite(nll) for nll in choice["valid_nll"].values())
    pace_epochs = len(steps) / start(recipe, tmp_path / "run", about=about).task.batches_per_epoch
    assert pace_epochs == pytest.approx(choice["epochs"], rel=0.2)  # the shared part is trained once
    assert RunFolder(tmp_path / "run").origin["temperature_choice"] == choice
    assert not (tmp_path / "run.pilot").exists()


def test_pilots_that_are_done_are_not_run_again(tiny, tmp_path):
    class Killed(BaseException):
        pass

    whole = with_chosen_temperature(tiny(*LONG), tmp_path / "whole")[1]
    seen = []

    def die_in_the_third(trainer):
        seen.append(trainer.folder.path.name)
        if seen[-1] == f"T-{GRID[2]:g}":
            raise Killed

    with pytest.raises(Killed):
        with_chosen_temperature(tiny(*LONG), tmp_path / "cut", die_in_the_third)
    seen.clear()
    again = with_chosen_temperature(tiny(*LONG), tmp_path / "cut", lambda t: seen.append(t.folder.path.name))[1]
    assert again == whole
    assert set(seen) == {f"T-{t:g}" for t in GRID[2:]}


def test_other_recipes_come_back_and_auto_cannot_be_trained(tiny, tmp_path):
    recipe = tiny("temperature=0.5")
    assert with_chosen_temperature(recipe, tmp_path / "run") == (recipe, {})
    with pytest.raises(LangevinError, match="still 'auto'"):
        start(tiny("temperature=auto"), tmp_path / "run")
    assert pilot_recipe(tiny(*LONG), 0.1).run.burn_in_temperature == 0
