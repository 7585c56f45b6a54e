"""temperature = "auto": chosen on validation by pilots that share their start."""

import math

import pytest

from langevin.errors import Diverged, LangevinError
from langevin.recipe.schedule import Pace
from langevin.store.folder import RunFolder
from langevin.tasks import open_task
from langevin.training.chains import start_chains
from langevin.training.session import start
from langevin.tune import DRAWS, GRID, LEVEL, candidates, pilot_recipe, with_chosen_temperature

LONG = ("epochs=20", "temperature=auto")


def seeing(see):
    """A way to train that shows the trainer after every step."""
    return lambda trainer, until: trainer.run(see, until)


def test_the_warmest_that_is_level_with_the_best_is_taken_and_told(tiny, tmp_path):
    steps = []
    recipe, about = with_chosen_temperature(tiny(*LONG), tmp_path / "run", seeing(lambda t: steps.append(t.step)))
    choice = about["temperature_choice"]
    warmth = choice["valid_nll"]["temperature"]
    level = [float(t) for t, nll in warmth.items() if nll <= min(warmth.values()) * (1 + LEVEL)]
    assert recipe.sampler.temperature == choice["chosen"]["temperature"] == max(level)
    assert len(warmth) == len(GRID)
    assert len(set(warmth.values())) > 1
    scores = [nll for tried in choice["valid_nll"].values() for nll in tried.values()]
    assert all(math.isfinite(nll) for nll in scores)
    pace_epochs = len(steps) / start(recipe, tmp_path / "run", about=about).task.batches_per_epoch
    assert pace_epochs == pytest.approx(choice["epochs"], rel=1e-6)  # the shared part is trained once
    assert RunFolder(tmp_path / "run").origin["temperature_choice"] == choice
    assert not (tmp_path / "run.pilot").exists()


def test_pilots_that_are_done_are_not_run_again(tiny, tmp_path):
    class Killed(BaseException):
        pass

    whole = with_chosen_temperature(tiny(*LONG), tmp_path / "whole")[1]
    seen = []

    @seeing
    def die_in_the_third(trainer):
        seen.append(trainer.folder.path.name)
        if seen[-1] == f"temperature-{GRID[2]:g}":
            raise Killed

    with pytest.raises(Killed):
        with_chosen_temperature(tiny(*LONG), tmp_path / "cut", die_in_the_third)
    seen.clear()
    again = with_chosen_temperature(tiny(*LONG), tmp_path / "cut", seeing(lambda t: seen.append(t.folder.path.name)))[1]
    assert again == whole
    left = {f"{key}-{value}" for key, tried in again["temperature_choice"]["valid_nll"].items() for value in tried}
    assert set(seen) == left - {f"temperature-{t:g}" for t in GRID[:2]}


def test_other_recipes_come_back_and_auto_cannot_be_trained(tiny, tmp_path):
    recipe = tiny("temperature=0.5")
    assert with_chosen_temperature(recipe, tmp_path / "run") == (recipe, {})
    with pytest.raises(LangevinError, match="still 'auto'"):
        start(tiny("temperature=auto"), tmp_path / "run")
    with pytest.raises(LangevinError, match="still 'auto'"):
        start_chains(tiny("temperature=auto"), tmp_path / "run", 2)
    assert pilot_recipe(tiny(*LONG), 10).run.burn_in_temperature == 0


def test_prior_and_ceiling_are_tried_where_the_sampler_has_them(tiny):
    wide = tiny("temperature=0.1", "prior_var=4.0")
    assert candidates(wide, "prior_var", 100) == pytest.approx([0.4, 40])
    assert candidates(wide, "ceiling", 100) == pytest.approx([20, 2000])  # around N σ
    assert candidates(tiny("temperature=0", "prior_var=4.0"), "ceiling", 100) == pytest.approx([20, 2000])
    assert candidates(tiny("temperature=0", "prior_var=none"), "ceiling", 100) == []  # RMSprop itself
    plain = tiny("sampler.name=sgld", "temperature=0.1", "beta=none", "eps=none", "prior_var=none")
    assert candidates(plain, "prior_var", 100) == []
    assert candidates(plain, "ceiling", 100) == []
    assert candidates(tiny("ceiling=3.0", "temperature=1"), "ceiling", 100) == pytest.approx([0.3, 30])


def test_a_candidate_branches_with_its_own_settings(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("langevin.tune.GRID", (0.5, 0.1))
    used = set()

    def see(trainer):
        group = trainer.sampler.param_groups[0]
        used.add((trainer.folder.path.name, group["prior_var"], group["ceiling"]))

    with_chosen_temperature(tiny(*LONG, "prior_var=2.0"), tmp_path / "run", seeing(see))
    for name, prior, ceiling in used:
        key, _, value = name.rpartition("-")
        if key in ("prior_var", "ceiling"):
            assert {"prior_var": prior, "ceiling": ceiling}[key] == pytest.approx(float(value), rel=1e-4)
    assert len({name for name, _, _ in used if name.startswith("ceiling")}) == 2


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ({"temperature-0.01": 1.0, "prior_var-0.2": 0.9, "ceiling-2": 0.8}, (0.01, 0.2, 2.0)),
        ({"temperature-0.1": 1.0, "prior_var-20": math.inf}, (0.1, 2.0, None)),
        ({"temperature-0": 1.0, "prior_var-20": 0.5}, (0.0, 20.0, None)),
        ({"temperature-0": 1.0, "temperature-0.01": 1.0049, "temperature-0.1": 1.0051}, (0.01, 2.0, None)),
        ({"temperature-0.1": 1.0, "prior_var-20": 0.981, "ceiling-200": 0.981}, (0.1, 2.0, None)),
        ({"temperature-0.1": 1.0, "prior_var-20": 0.979, "ceiling-200": 0.97}, (0.1, 20.0, None)),
    ],
)
def test_each_setting_is_the_best_given_those_before(tiny, tmp_path, monkeypatch, scores, chosen):
    monkeypatch.setattr("langevin.tune.pilot_score", lambda recipe, pilots, name, train: scores.get(name, 5.0))
    monkeypatch.setattr("langevin.tune.gain_ceiling", lambda group: 20.0)
    found, about = with_chosen_temperature(tiny(*LONG, "prior_var=2.0"), tmp_path / "run")
    assert (found.sampler.temperature, pytest.approx(found.sampler.prior_var), found.sampler.ceiling) == chosen
    assert about["temperature_choice"]["chosen"]["temperature"] == chosen[0]


@pytest.mark.parametrize("epochs", [3, 7, 8, 13])
@pytest.mark.parametrize("batches", [1, 4, 37, 98])
def test_every_candidate_gets_its_draws_whatever_the_sizes(tiny, epochs, batches):
    run = pilot_recipe(tiny(*LONG, f"epochs={epochs}", "burn_in=1"), batches).run
    pace = Pace(run, 1.0, 1.0, batches)
    assert sum(pace.is_sample(step) for step in range(pace.total + 1)) == DRAWS
    assert pace.is_sample(pace.total)


def test_pilots_of_another_recipe_are_forgotten(tiny, tmp_path):
    class Killed(BaseException):
        pass

    seen = []

    @seeing
    def die_in_the_second(trainer):
        if trainer.folder.path.name == f"temperature-{GRID[1]:g}":
            raise Killed

    with pytest.raises(Killed):
        with_chosen_temperature(tiny(*LONG, "lr=0.02"), tmp_path / "run", die_in_the_second)
    with_chosen_temperature(tiny(*LONG, "lr=0.001"), tmp_path / "run", seeing(lambda t: seen.append(t.pace.base_lr)))
    assert set(seen) == {0.001}
    fresh = with_chosen_temperature(tiny(*LONG, "lr=0.001"), tmp_path / "fresh")[1]
    assert len(seen) == round(fresh["temperature_choice"]["epochs"] * open_task(tiny()).batches_per_epoch)


def test_what_somebody_keeps_where_the_pilots_go_is_left_alone(tiny, tmp_path):
    (tmp_path / "run.pilot").mkdir()
    (tmp_path / "run.pilot" / "precious.txt").write_text("x")
    with pytest.raises(LangevinError, match="expected nothing at"):
        with_chosen_temperature(tiny(*LONG), tmp_path / "run")
    assert (tmp_path / "run.pilot" / "precious.txt").read_text() == "x"


def test_a_candidate_that_diverges_is_not_taken(tiny, tmp_path):
    @seeing
    def diverge_when_hot(trainer):
        if trainer.folder.path.name == "temperature-1":
            raise Diverged("the loss became nan")

    found, about = with_chosen_temperature(tiny(*LONG), tmp_path / "run", diverge_when_hot)
    assert about["temperature_choice"]["valid_nll"]["temperature"]["1"] == math.inf
    assert found.sampler.temperature < 1


def test_the_command_refuses_an_occupied_folder_before_it_chooses(cli, text_file, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").touch()
    code, _, said = cli("train", "--text", text_file, "--out", tmp_path / "run", "--set", "temperature=auto")
    assert code == 2
    assert "not an empty folder" in said
    assert not (tmp_path / "run.pilot").exists()
