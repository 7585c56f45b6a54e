"""temperature = "auto": chosen on validation by pilots that share their start."""

import math

import pytest

from langevin.errors import LangevinError
from langevin.runfolder import RunFolder
from langevin.tune import GRID, candidates, pilot_recipe, with_chosen_temperature
from langevin.workflow import start

LONG = ("epochs=20", "temperature=auto")


def test_the_best_of_the_grid_is_taken_and_told(tiny, tmp_path):
    steps = []
    recipe, about = with_chosen_temperature(tiny(*LONG), tmp_path / "run", lambda t: steps.append(t.step))
    choice = about["temperature_choice"]
    warmth = choice["valid_nll"]["temperature"]
    assert recipe.sampler.temperature == choice["chosen"]["temperature"] == float(min(warmth, key=lambda t: warmth[t]))
    assert len(warmth) == len(GRID)
    assert len(set(warmth.values())) > 1
    scores = [nll for tried in choice["valid_nll"].values() for nll in tried.values()]
    assert all(math.isfinite(nll) for nll in scores)
    assert recipe.sampler.prior_var == choice["chosen"]["prior_var"]
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
        if seen[-1] == f"temperature-{GRID[2]:g}":
            raise Killed

    with pytest.raises(Killed):
        with_chosen_temperature(tiny(*LONG), tmp_path / "cut", die_in_the_third)
    seen.clear()
    again = with_chosen_temperature(tiny(*LONG), tmp_path / "cut", lambda t: seen.append(t.folder.path.name))[1]
    assert again == whole
    left = {f"{key}-{value}" for key, tried in again["temperature_choice"]["valid_nll"].items() for value in tried}
    assert set(seen) == left - {f"temperature-{t:g}" for t in GRID[:2]}


def test_other_recipes_come_back_and_auto_cannot_be_trained(tiny, tmp_path):
    recipe = tiny("temperature=0.5")
    assert with_chosen_temperature(recipe, tmp_path / "run") == (recipe, {})
    with pytest.raises(LangevinError, match="still 'auto'"):
        start(tiny("temperature=auto"), tmp_path / "run")
    assert pilot_recipe(tiny(*LONG)).run.burn_in_temperature == 0


def test_prior_and_ceiling_are_tried_where_the_sampler_has_them(tiny):
    wide = tiny("temperature=0.1", "prior_var=4.0")
    assert candidates(wide, "prior_var", 100) == pytest.approx([0.4, 40])
    assert candidates(wide, "ceiling", 100) == pytest.approx([20, 2000])  # around N σ
    assert candidates(tiny("temperature=0", "prior_var=4.0"), "ceiling", 100) == []
    plain = tiny("sampler.name=sgld", "temperature=0.1", "beta=none", "eps=none", "prior_var=none")
    assert candidates(plain, "prior_var", 100) == []
    assert candidates(plain, "ceiling", 100) == []
    assert candidates(tiny("ceiling=3.0", "temperature=1"), "ceiling", 100) == pytest.approx([0.3, 30])


def test_a_candidate_branches_with_its_own_prior(tiny, tmp_path):
    priors = set()
    recipe = tiny(*LONG, "prior_var=2.0")
    with_chosen_temperature(recipe, tmp_path / "run", lambda t: priors.add(t.sampler.param_groups[0]["prior_var"]))
    assert sorted(priors) == pytest.approx([0.2, 2, 20])
