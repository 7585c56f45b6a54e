"""A recipe fitted to its text and to the time there is: numbers in the run folder, and nothing
asked twice."""

import pytest

from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.recipe.sentences import MOST_EPOCHS, STEPS
from langevin.recipe.text import settings_by_size
from langevin.store.folder import RunFolder
from langevin.training import budget
from langevin.training.budget import fit_recipe, training_tokens
from langevin.training.session import start
from tests.conftest import TINY
from tests.sentences import questions, write_questions

SMALL = [key for key in TINY if key.partition("=")[0] in ("hidden", "layers", "batch_size", "window", "threads")]


def test_what_is_left_out_follows_from_the_size_of_the_text(text_file):
    recipe = fit_recipe(load_recipe("text", [f"corpus={text_file}"]))
    rule = settings_by_size("byte", training_tokens(recipe.data))
    got = recipe.model_dump()
    assert rule["run"]["epochs"] > 0
    for table, settings in rule.items():
        assert {key: got[table][key] for key in settings} == settings
    assert not recipe.run.by_size
    assert fit_recipe(recipe) == recipe


@pytest.mark.parametrize("level", ["byte", "char", "word"])
def test_small_texts_are_passed_over_more_often_within_bounds(level):
    epochs = [settings_by_size(level, tokens)["run"]["epochs"]
              for tokens in (0, 1000, 20_000, 120_000, 450_000, 900_000)]
    assert epochs == sorted(epochs, reverse=True)
    assert epochs[0] == epochs[1] <= 40
    assert epochs[2] > epochs[-1]


def test_what_was_set_stays(text_file):
    asked = ["hidden=9", "epochs=1.5", "lr=0.125", "batch_size=3", "prior_var=7"]
    recipe = fit_recipe(load_recipe("text", [f"corpus={text_file}", *asked]))
    got = (recipe.model.hidden, recipe.run.epochs, recipe.sampler.lr, recipe.data.batch_size, recipe.sampler.prior_var)
    assert got == (9, 1.5, 0.125, 3, 7)


@pytest.mark.parametrize("level", ["byte", "char", "word"])
def test_tokens_are_counted_as_they_are_cut(tmp_path, level):
    path = tmp_path / "a.txt"
    path.write_text("Snow lay deep on the château.\n" * 100, "utf-8")
    data = load_recipe("text", [f"corpus={path}", f"level={level}"]).data
    size = {"byte": 31, "char": 30, "word": 7}[level]
    assert training_tokens(data) == 90 * size


def test_minutes_become_epochs_once(text_file, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "seconds_of", lambda task, parts: (0.5, 1.0))
    recipe = load_recipe("text", [f"corpus={text_file}", *SMALL, "minutes=1"])
    monkeypatch.setattr(budget.time, "monotonic", lambda: 0.0)
    fitted = fit_recipe(recipe)
    steps = (60 - 8 * 1.0) / 0.5
    assert fitted.run.minutes is None
    monkeypatch.undo()
    trainer = start(fitted, tmp_path / "r")
    assert trainer.pace.total == steps
    assert RunFolder(tmp_path / "r").recipe.run.epochs == fitted.run.epochs
    bounded = load_recipe("text", [f"corpus={text_file}", *SMALL, "minutes=1000", "epochs=0.5"])
    monkeypatch.setattr(budget, "seconds_of", lambda task, parts: (0.5, 1.0))
    assert fit_recipe(bounded).run.epochs == 0.5


def test_timing_leaves_no_trace(text_file, tmp_path):
    """The run after it is that of the same epochs, bit for bit."""
    recipe = load_recipe("text", [f"corpus={text_file}", *SMALL, "minutes=1000", "epochs=1"])
    start(recipe, tmp_path / "timed").run()
    start(load_recipe("text", [f"corpus={text_file}", *SMALL, "epochs=1"]), tmp_path / "plain").run()
    samples = [[s.sha256 for s in RunFolder(tmp_path / name).store().read()] for name in ("timed", "plain")]
    assert samples[0] == samples[1]


def test_too_little_time_is_refused(text_file, tmp_path):
    recipe = load_recipe("text", [f"corpus={text_file}", *SMALL, "minutes=1e-6"])
    with pytest.raises(LangevinError, match="expected minutes for at least one step"):
        start(recipe, tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_fewer_sentences_are_passed_over_more_often(tmp_path):
    epochs = {}
    for count in (40, 4000):
        path = write_questions(tmp_path / f"{count}.csv", questions(count))
        recipe = fit_recipe(load_recipe("classify-words", [f"corpus={path}"]))
        epochs[count] = recipe.run.epochs
        assert not recipe.run.by_size
    assert epochs == {40: MOST_EPOCHS, 4000: round(STEPS / (round(4000 * 0.9 * 0.9) // 50))}
    assert fit_recipe(load_recipe("classify-words", [f"corpus={path}", "epochs=3"])).run.epochs == 3


def test_few_captions_are_passed_over_more_often(tmp_path):
    epochs = {}
    for count in (60, 6000):
        path = tmp_path / f"{count}.csv"
        rows = [f"{number // 2}.jpg,A dog runs {number}" for number in range(count)]
        path.write_text("\n".join(["image,caption", *rows]))
        recipe = fit_recipe(load_recipe("captions", [f"corpus={path}"]))
        epochs[count] = recipe.run.epochs
        assert not recipe.run.by_size
    assert epochs == {60: 40, 6000: round(1200 / (2 * 2400 // 64))}
    assert fit_recipe(load_recipe("captions", [f"corpus={path}", "epochs=3"])).run.epochs == 3
