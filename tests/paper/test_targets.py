import pytest

from langevin.errors import LangevinError
from langevin.recipe import load_recipe, shipped
from langevin.recipe.schedule import Pace
from paper.questions import COMPARED
from paper.targets import TARGETS, target_named, twins


@pytest.mark.parametrize("name", TARGETS)
def test_every_cell_has_a_recipe_and_every_quick_version_is_valid(name):
    target = TARGETS[name]
    assert target.cells
    for run in target.runs(quick=True):
        assert run.recipe in shipped()
        load_recipe(run.recipe, run.overrides)


def test_every_number_of_the_paper_belongs_to_a_cell():
    for target in TARGETS.values():
        assert set(target.paper) <= set(target.cells)


def test_twins():
    cells = ("a-rmsprop", "a-rmsprop-dropout", "a-rmsprop-gal", "a-psgld", "a-psgld-dropout", "a-psgld-tempered")
    assert twins(cells, {"psgld": "rmsprop"}) == (
        ("a-psgld", "a-rmsprop"), ("a-psgld-dropout", "a-rmsprop-dropout"), ("a-psgld-tempered", "a-rmsprop"),
    )
    assert len(TARGETS["ptb"].pairs) == 12
    assert len(TARGETS["sentences"].pairs) == 10


def test_runs_are_folds_where_the_paper_has_folds():
    sentences = target_named("sentences")
    assert [run.name for run in sentences.runs(("mr-psgld",), 2)] == ["mr-psgld.fold0", "mr-psgld.fold1"]
    assert [run.name for run in sentences.runs(("trec-psgld",), 2)] == ["trec-psgld", "trec-psgld.seed1"]
    with pytest.raises(LangevinError, match="has no cell 'wp-lstm-adam'"):
        target_named("wp").runs(("wp-lstm-adam",))
    with pytest.raises(LangevinError, match="no target 'table2'"):
        target_named("table2")


def test_cells_are_chosen_by_name_or_pattern():
    target = TARGETS["sentences"]
    assert [run.cell for run in target.runs(("trec-*-dropout", "cr-psgld"))] == [
        "cr-psgld", "trec-rmsprop-dropout", "trec-psgld-dropout"
    ]
    with pytest.raises(LangevinError, match="no cell 'trec-sgd'"):
        target.runs(("trec-psgld", "trec-sgd"))


def test_variants_are_recipes_with_settings_changed():
    target = target_named("temperature-trec")
    (run,) = target.runs(("trec-psgld.T0.1",))
    assert (run.recipe, run.name) == ("trec-psgld", "trec-psgld.T0.1")
    assert load_recipe(run.recipe, run.overrides).sampler.temperature == 0.1
    authors = load_recipe("trec-psgld", target.runs(("trec-psgld.T2overN",))[0].overrides)
    assert authors.sampler.resolved(4907)[1]["temperature"] == pytest.approx(2 / 4907)


def test_seeds_of_ensembles_do_not_overlap():
    runs = target_named("alternatives-trec").runs(("trec-rmsprop-dropout.four",), 2)
    assert [(run.name, run.chains) for run in runs] == [
        ("trec-rmsprop-dropout.four", 4), ("trec-rmsprop-dropout.four.seed1", 4),
    ]
    assert load_recipe(runs[1].recipe, runs[1].overrides).run.seed == 4


@pytest.mark.parametrize("name", [*COMPARED, "temperature-trec", "temperature-ptb", "cycles", "chains"])
def test_what_is_compared_is_of_equal_cost(name):
    target = target_named(name)
    runs = {run.cell: (run.chains, load_recipe(run.recipe, run.overrides).run) for run in target.runs()}
    assert len({chains * run.epochs for chains, run in runs.values()}) == 1
    assert {run.patience for _, run in runs.values()} == {None}
    if name in COMPARED:
        assert {cell for _, cell, _ in COMPARED[name]} == set(target.cells)


@pytest.mark.parametrize("name", TARGETS)
def test_every_quick_run_collects_samples(name):
    for run in TARGETS[name].runs(quick=True):
        settings = load_recipe(run.recipe, run.overrides).run
        pace = Pace(settings, 1.0, 1.0, 90)
        assert any(pace.is_sample(step) for step in range(pace.total + 1)), run.name
