"""A run beside its optimiser twin: same cost, no noise, no prior, one sentence in the end."""

import json

import pytest

from langevin.errors import LangevinError
from langevin.predict.load import open_posterior
from langevin.predict.twin import compare_with_twin
from langevin.training.session import start
from langevin.training.twin import twin_recipe
from tests.conftest import SET


@pytest.mark.parametrize(
    ("settings", "name"),
    [(["name=sgld"], "sgd"), (["preconditioner=adagrad"], "adagrad"), (["name=santa", "anneal=0.1"], "rmsprop"),
     (["name=sgnht", "burn_in_temperature=0.1"], "momentum")],
)
def test_the_twin_has_all_but_noise_and_prior(tiny, settings, name):
    recipe = tiny(*settings, "clip=norm", "sample=mean", "pool=counts")
    twin = twin_recipe(recipe)
    assert twin.sampler.name == name
    assert (twin.sampler.resolved(9)[1]["temperature"], twin.sampler.prior_var) == (0, None)
    assert (twin.sampler.lr, twin.model, twin.run.epochs) == (recipe.sampler.lr, recipe.model, recipe.run.epochs)
    assert (twin.run.clip, twin.run.sample, twin.data.pool) == ("norm", "last", "none")
    with pytest.raises(LangevinError, match=f"got {name}, which is one"):
        twin_recipe(twin)


def test_both_are_compared_item_by_item(finished_run, tiny, tmp_path):
    start(twin_recipe(tiny()), tmp_path / "twin").run()
    ours, twin = open_posterior(finished_run), open_posterior(tmp_path / "twin")
    found = compare_with_twin(ours, twin)
    assert found.averaged.nll == pytest.approx(ours.evaluate("valid").averaged.nll)
    assert found.single.nll == pytest.approx(twin.evaluate("valid").best_single.nll)
    assert found.gain == pytest.approx(found.single.nll - found.averaged.nll, abs=1e-6)
    assert (found.steps, found.optimiser) == (found.twin_steps, "rmsprop")


def test_the_command(cli, text_file, tmp_path):
    train = ["train", "--text", text_file, *SET, "--set", "pool=none", "--compare", "--quiet", "--out", tmp_path / "r"]
    code, said, _ = cli(*train)
    assert code == 0
    assert "the best network of rmsprop, chosen on this split," in said
    code, said, _ = cli(*train, "--overwrite", "--json")
    assert json.loads(said)["twin"]["twin"] == str(tmp_path / "r-rmsprop")
    assert cli(*train)[0] == cli(*train, "--chains", 2)[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "r-rmsprop"]


def test_what_stands_where_the_twin_goes_costs_nothing(cli, text_file, tmp_path):
    (tmp_path / "r-rmsprop").mkdir()
    (tmp_path / "r-rmsprop" / "thesis.txt").write_text("years of work")
    code, _, said = cli("train", "--text", text_file, *SET, "--compare", "--out", tmp_path / "r", "--overwrite")
    assert (code, "r-rmsprop" in said) == (2, True)
    assert not (tmp_path / "r").exists()
