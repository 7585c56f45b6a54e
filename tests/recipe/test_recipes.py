import pytest

from langevin.errors import LangevinError
from langevin.recipe import Recipe, SamplerSettings, load_recipe, locate, shipped
from langevin.samplers import SAMPLERS


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_recipe_loads_and_survives_a_round_trip(name, tmp_path):
    recipe = load_recipe(name)
    assert recipe.title
    path = tmp_path / "r.toml"
    path.write_text(recipe.to_toml())
    assert load_recipe(path) == recipe


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_character_recipes_are_the_paper_s(cell):
    sampler, optimiser = load_recipe(f"wp-{cell}-psgld"), load_recipe(f"wp-{cell}-rmsprop")
    assert sampler.data == optimiser.data
    assert (sampler.model, sampler.run) == (optimiser.model, optimiser.run)
    assert (sampler.data.batch_size, sampler.data.window, sampler.data.parts) == (100, 100, (260, 32, 33))
    assert (sampler.run.epochs, sampler.run.burn_in, sampler.run.sample_every) == (20, 4, 0.5)
    assert sampler.sampler.resolved(1)[1]["temperature"] == 1
    assert optimiser.sampler.resolved(1) == ("psgld", {"temperature": 0.0, "lr": 2e-3, "beta": 0.99, "eps": 1e-8})


def test_overrides():
    recipe = load_recipe("text", ["epochs=6", "sampler.lr=0.5", "cell=gru", "patience=none", "parts=[8,1,1]"])
    assert (recipe.run.epochs, recipe.sampler.lr, recipe.model.cell, recipe.run.patience) == (6, 0.5, "gru", None)
    assert recipe.data.parts == (8, 1, 1)


def test_keys_are_unique_across_tables():
    assert locate("lr") == ("sampler", "lr")
    from langevin.recipe import all_keys

    assert len(set(all_keys())) == len(all_keys())


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epoch=4", "unknown recipe key 'epoch'; did you mean 'epochs'"),
        ("model.lr=4", "unknown recipe key"),
        ("epochs", "expected key=value"),
        ("lr=-1", "sampler.lr: input should be greater than 0, got -1"),
        ("temperature=-0.5", "expected a number of 0 or more, .*, got -0.5"),
        ("prior_var=0", "greater than 0"),
        ("burn_in=10", "burn_in must be shorter than the run of 10 epochs, got 10"),
        ("sample_every=7", "no sample would be collected"),
        ("name=psgdl", "did you mean 'psgld'"),
        ("friction=0.5", "psgld has no setting 'friction'"),
        ("cell=transformer", "'lstm', 'gru' or 'rnn', got 'transformer'"),
        ("parts=[1,0,1]", "three positive numbers"),
        ("name=rmsprop", "is an optimiser: temperature 0"),
        ("dropout=1", "less than 1"),
        ("characters=5", "model.characters is for classifiers, got 5 in a recipe for language-model"),
    ],
)
def test_impossible_recipes_are_refused(override, message):
    with pytest.raises(LangevinError, match=message.replace("(", r"\(")):
        load_recipe("text", ["lr_schedule=constant", "epochs=10", "temperature=0.05", override])


@pytest.mark.parametrize(
    ("name", "kept"),
    [("rmsprop", {"lr", "beta", "eps"}), ("sgd", {"lr"}), ("sgld", {"lr", "temperature", "prior_var"}),
     ("sghmc", {"lr", "temperature", "prior_var"})],
)
def test_another_sampler_is_named_alone(name, kept):
    """What the one of the recipe had and this one cannot have goes; what is asked for is
    refused."""
    sampler = load_recipe("cr-psgld", [f"name={name}"]).sampler
    assert sampler.model_dump(exclude_none=True).keys() == kept | {"name"}
    with pytest.raises(LangevinError, match="remove it or choose another sampler"):
        load_recipe("cr-psgld", [f"name={name}", "thermostat_rate=0.1"])


def test_a_plateau_has_no_burn_in_to_set(tmp_path):
    with pytest.raises(LangevinError, match=r"burn_in follows from epochs .* got 2.0; leave it out, or set"):
        load_recipe("text", ["burn_in=2"])
    recipe = load_recipe("text", ["epochs=4"])
    assert recipe.run.first_sample == 2
    assert "samples from half-way on" in recipe.run.describe()


def test_unknown_keys_in_a_file_are_refused(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text("[run]\nepocs = 3\n")
    with pytest.raises(LangevinError, match=r"unknown recipe key 'run.epocs'; did you mean 'epochs'"):
        load_recipe(path)
    path.write_text("[run\n")
    with pytest.raises(LangevinError, match="not valid TOML"):
        load_recipe(path)


def test_unknown_recipe_suggests_the_nearest():
    with pytest.raises(LangevinError, match="did you mean 'wp-lstm-psgld'"):
        load_recipe("wp-lstm-psgd")


def test_temperature_may_be_over_n():
    recipe = load_recipe("text", ["temperature=2/N"])
    assert recipe.sampler.resolved(100)[1]["temperature"] == 0.02
    with pytest.raises(LangevinError, match="temperature"):
        load_recipe("text", ["temperature=warm"])


def test_a_temperature_is_not_chosen():
    with pytest.raises(LangevinError, match=r"'auto' is gone, .*: set one; 0\.1 for characters, 0\.05 for words"):
        load_recipe("text", ["temperature=auto"])


GONE = {"model": {"dropconnect": 0.0}, "run": {"temperature_ramp": 0, "poly_offset": 1.0, "poly_power": 0.55}}


def test_recipes_that_name_keys_that_are_gone_open_where_these_did_nothing(tmp_path):
    """Runs write their whole recipe, so those of former versions name all keys of their time."""
    recipe, path = load_recipe("wp-lstm-psgld"), tmp_path / "r.toml"
    text = recipe.to_toml()
    for table, keys in GONE.items():
        lines = "".join(f"{key} = {value}\n" for key, value in keys.items())
        text = text.replace(f"[{table}]\n", f"[{table}]\n{lines}")
    path.write_text(text)
    assert load_recipe(path) == recipe
    assert not any(key in load_recipe(path).to_toml() for keys in GONE.values() for key in keys)


@pytest.mark.parametrize(("table", "key"), [(table, key) for table, keys in GONE.items() for key in keys])
def test_a_key_that_is_gone_is_refused_where_it_would_do_something(table, key, tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(f"[{table}]\n{key} = 0.25\n")
    with pytest.raises(LangevinError, match=rf"^{table}.{key} is gone: expected .*, got 0.25; leave it out"):
        load_recipe(path)
    with pytest.raises(LangevinError, match=f"recipe key '{key}' is gone; leave it out"):
        load_recipe("text", [f"{key}=0.25"])
    with pytest.raises(LangevinError, match="'cyclical' or 'plateau', got 'polynomial'"):
        load_recipe("text", ["lr_schedule=polynomial"])


def test_a_recipe_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Recipe().task = "other"


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_can_be_named(name):
    assert SamplerSettings(name=name).resolved(1)[0] == name


@pytest.mark.parametrize("size", ["small", "medium", pytest.param("large", marks=pytest.mark.slow)])
def test_penn_treebank_recipes_train_and_resume(size, own_data, tmp_path):
    """A few steps of each size; dropout and sampling joined, both kinds of batches."""
    from langevin.training.session import resume, start

    batching = "random" if size == "medium" else "successive"
    short = ["epochs=0.04", "burn_in=0.01", "sample_every=0.01", "threads=1"]
    trainer = start(load_recipe(f"ptb-{size}-{batching}-sgld-dropout", short), tmp_path / "run")
    validate = trainer.task.log_probs
    trainer.task.log_probs = lambda *_, **__: validate_some(trainer, validate)
    trainer.run()
    assert len(trainer.store) >= 2
    assert resume(tmp_path / "run").finished


def validate_some(trainer, validate):
    """Validation on the first windows only: the whole split takes a minute with the large model."""
    batches = trainer.task.evaluated["valid"]
    batches.streams, batches.tail = batches.streams[:, :41], batches.tail[:0]
    return validate(trainer.model, "valid")


@pytest.mark.parametrize("name", ["mr", "cr", "subj", "mpqa", "trec"])
def test_sentence_recipes_are_the_paper_s_and_differ_in_the_method_alone(name):
    methods = {m: load_recipe(f"{name}-{m}") for m in (
        "rmsprop", "rmsprop-dropout", "rmsprop-gal", "psgld", "psgld-dropout")}
    plain = methods["rmsprop"]
    assert (plain.data.batch_size, plain.data.vectors) == (50, "word2vec_googlenews_300d")
    assert plain.data.train_vectors
    assert (plain.model.hidden, plain.model.layers, plain.sampler.lr) == (400, 1, 1e-3)
    assert (plain.run.epochs, plain.run.burn_in, plain.run.sample_every) == (20, 1, 1)
    assert (plain.data.folds, plain.data.fold) == ((10, None) if name == "trec" else (10, 0))
    for method, recipe in methods.items():
        assert recipe.data == plain.data
        expected = (0.5, "gal") if "gal" in method else (0.5, "naive") if "dropout" in method else (0, "naive")
        assert (recipe.model.dropout, recipe.model.dropout_kind) == expected
        assert recipe.sampler.name == method.split("-")[0]
        if method.startswith("psgld"):
            assert None not in (recipe.sampler.temperature, recipe.sampler.prior_var)
