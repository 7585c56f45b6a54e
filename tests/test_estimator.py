"""The estimator is a scikit-learn classifier (its own checks say so) and the run behind it a run like any other."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks as checks

from langevin import BayesianTextClassifier, LangevinError
from langevin.fitted_run import data_beside
from langevin.predict.classification import Classifier
from langevin.recipe import load_recipe
from langevin.errors import Interrupted
from tests.sentences import questions

TEXTS, LABELS = map(list, zip(*questions(), strict=True))
TINY = {"hidden": 8, "lr": 0.02, "epochs": 3, "burn_in": 1, "batch_size": 10, "dropout": 0.0, "threads": 1}


@pytest.fixture(scope="module")
def fitted():
    return BayesianTextClassifier(**TINY).fit(TEXTS, LABELS)


class OnNumbers(BayesianTextClassifier):
    """For scikit-learn's checks, which speak in numbers only: each number of a row becomes a word."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags

    def _texts(self, X):
        rows = np.asarray(X)
        if rows.ndim != 2:
            raise ValueError("Expected 2D array. Reshape your data")
        return [" ".join(f"{column}_{round(float(value))}" for column, value in enumerate(row)) for row in rows]


@pytest.mark.parametrize(
    "name",
    [
        "estimator_cloneable", "estimator_tags_renamed", "valid_tag_types", "estimator_repr",
        "no_attributes_set_in_init", "fit_score_takes_y", "estimators_overwrite_params", "dont_overwrite_parameters",
        "estimators_fit_returns_self", "estimators_unfitted", "do_not_raise_errors_in_init_or_set_params",
        "mixin_order", "get_params_invariance", "set_params", "dict_unchanged", "fit_idempotent", "fit_check_is_fitted",
        "estimators_pickle", "methods_sample_order_invariance", "methods_subset_invariance", "classifiers_classes",
        "classifiers_one_label", "classifiers_regression_target", "supervised_y_2d", "supervised_y_no_nan",
        "requires_y_none", "non_transformer_estimators_n_iter", "classifier_data_not_an_array"
    ],
)
def test_checks_of_scikit_learn(name):
    small = TINY | {"epochs": 1, "burn_in": 0, "hidden": 4, "validation_fraction": 0.2}
    getattr(checks, f"check_{name}")("OnNumbers", OnNumbers(**small))


def test_default_parameters_can_be_built():
    checks.check_parameters_default_constructible("BayesianTextClassifier", BayesianTextClassifier())


def test_answers(fitted):
    proba, std = fitted.predict_proba(TEXTS), fitted.predict_std(TEXTS)
    assert fitted.classes_.tolist() == ["person", "place", "thing"]
    assert proba.shape == std.shape == (len(TEXTS), 3)
    assert np.allclose(proba.sum(1), 1)
    assert (fitted.predict(TEXTS) == fitted.classes_[proba.argmax(1)]).all()
    assert fitted.score(TEXTS, LABELS) > 0.9
    few = [*TEXTS[:3], ""]  # asked alike: in a batch of another size a processor may round otherwise
    proba, std, told = fitted.predict_proba(few), fitted.predict_std(few), fitted.predict_with_uncertainty(few)
    assert told["probability"].tolist() == proba.max(1).tolist()
    assert (told["std"] == std[range(4), proba.argmax(1)]).all()
    assert told["empty"].tolist() == [False, False, False, True]
    assert set(told) == {"label", "probability", "std", "entropy", "mutual_information", "disagreement", "empty"}
    assert (told["entropy"] >= told["mutual_information"]).all()


def test_the_run_behind_it_is_a_run_like_any_other(fitted):
    run = Classifier(fitted.run_.path)
    assert len(run.samples) == 2 == sum("average" in line for line in fitted.history_)
    given = run.predict({"texts": run.encode(TEXTS).sentences})["texts"]
    assert given.probabilities.numpy().tolist() == fitted.predict_proba(TEXTS).tolist()
    assert run.open_task().splits == ("train", "valid")


def test_labels_of_any_kind():
    numbers = {"place": -3, "person": 7, "thing": 20}
    for labels in ([label == "place" for label in LABELS], [numbers[x] for x in LABELS]):
        made = BayesianTextClassifier(**TINY | {"epochs": 2}).fit(np.array(TEXTS), np.array(labels))
        assert made.classes_.dtype == np.array(labels).dtype
        assert set(made.predict(TEXTS).tolist()) <= set(labels)


def test_same_seed_same_answers_and_the_caller_s_randomness_is_left_alone(fitted):
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    again = clone(fitted).fit(TEXTS, LABELS)
    assert torch.rand(2).equal(expected)
    assert (again.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    other = clone(fitted).set_params(random_state=1).fit(TEXTS, LABELS)
    assert (other.predict_proba(TEXTS) != fitted.predict_proba(TEXTS)).any()


def test_pipelines_cross_validation_and_grid_search():
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    piped = make_pipeline(lower, BayesianTextClassifier(**TINY | {"epochs": 2}))
    assert (cross_val_score(piped, TEXTS, LABELS, cv=2) > 0.5).all()
    grid = GridSearchCV(BayesianTextClassifier(**TINY | {"epochs": 2}),
                        {"sampler": ["psgld", "rmsprop"], "hidden": np.array([4, 8])}, cv=2)
    grid.fit(np.array(TEXTS), LABELS)
    assert grid.best_params_["hidden"] in (4, 8)
    assert grid.predict(TEXTS[:2]).shape == (2,)


def test_save_and_load(fitted, tmp_path, cli):
    fitted.save(tmp_path / "kept")
    loaded = BayesianTextClassifier.load(tmp_path / "kept")
    assert (loaded.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.get_params() == fitted.get_params()
    assert loaded.history_ == fitted.history_
    with pytest.raises(LangevinError, match="expected an empty folder"):
        fitted.save(tmp_path / "kept")
    fitted.save(tmp_path / "kept", overwrite=True)
    code, out, said = cli("decide", tmp_path / "kept", "--coverage", "0.5", "--json")  # its sentences came along
    assert code == 0, said
    assert json.loads(out)["test"] is None


def test_saving_over_a_folder_removes_only_what_is_ours(fitted, tmp_path):
    fitted.save(tmp_path / "kept")
    beside = data_beside(tmp_path / "kept")
    (tmp_path / "kept" / "notes.md").write_text("years of work")
    before = beside.read_bytes()
    with pytest.raises(LangevinError, match=r"notes\.md was not written by langevin"):
        fitted.save(tmp_path / "kept", overwrite=True)
    (tmp_path / "kept" / "notes.md").unlink()
    assert beside.read_bytes() == before
    recipe = tmp_path / "kept" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace(str(beside), "elsewhere.jsonl"))
    beside.write_text("sentences of somebody else")
    with pytest.raises(LangevinError, match="expected no file at"):
        fitted.save(tmp_path / "kept", overwrite=True)
    assert beside.read_text() == "sentences of somebody else"
    assert "elsewhere.jsonl" in recipe.read_text()


def test_pickle_holds_the_samples(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.run_.path != fitted.run_.path
    assert (copy.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    path = copy.run_.path
    assert copy.run_.classifier.open_task().splits == ("train", "valid")
    del copy
    assert not path.parent.exists()


def test_a_given_folder_is_used_and_never_twice(tmp_path):
    made = BayesianTextClassifier(**TINY | {"epochs": 2, "folder": tmp_path / "run"}).fit(TEXTS, LABELS)
    assert (tmp_path / "run" / "recipe.toml").is_file()
    with pytest.raises(LangevinError, match=r"expected an empty folder.*cross-validation"):
        clone(made).fit(TEXTS, LABELS)


def test_load_a_run_of_the_command_line(classifier_run):
    loaded = BayesianTextClassifier.load(classifier_run)
    assert loaded.predict(["where is Rome ?", "who was Homer ?"]).tolist() == ["place", "person"]
    recipe = Classifier(classifier_run).recipe
    same = loaded.recipe(recipe.data.corpus)
    assert (same.model, same.sampler, same.run) == (recipe.model, recipe.sampler, recipe.run)
    assert same.data.valid_file == recipe.data.valid_file


def test_settings_reach_the_recipe(tmp_path):
    made = BayesianTextClassifier(settings=["lr_schedule=cyclical", "clip=none"], random_state=np.random.RandomState(3))
    recipe = made.recipe(tmp_path)
    assert (recipe.run.lr_schedule, recipe.run.clip) == ("cyclical", "none")
    assert BayesianTextClassifier(sampler="rmsprop").recipe(tmp_path).sampler.resolved(10)[1]["temperature"] == 0


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("where is Rome", ["place"], "expected a list of texts, got one text"),
        (np.zeros((3, 2)), [0, 1, 1], "an array of 2 dimensions"),
        (["a", None], [0, 1], "got None as number 1"),
        ([], [], "at least one text"),
        (TEXTS, LABELS[:-1], "expected a label for each text"),
        (TEXTS, ["x"] * len(TEXTS), "one class, "),
        (TEXTS, None, "requires y"),
        (["a", "b"], [0, 1], "labels that repeat"),
    ],
)
def test_bad_input_is_a_value_error_and_ours(texts, labels, message):
    with pytest.raises(ValueError, match=message) as caught:
        BayesianTextClassifier(**TINY).fit(texts, labels)
    assert isinstance(caught.value, LangevinError)


def test_bad_parameters_are_told_at_fit():
    with pytest.raises(ValueError, match="did you mean 'psgld'"):
        BayesianTextClassifier(sampler="psgdl").fit(TEXTS, LABELS)


def test_unfitted(tmp_path):
    for call in ("predict", "predict_proba", "predict_std", "predict_with_uncertainty"):
        with pytest.raises(NotFittedError):
            getattr(BayesianTextClassifier(), call)(TEXTS)
    with pytest.raises(NotFittedError):
        BayesianTextClassifier().save(tmp_path / "x")


def test_langevin_alone_does_not_import_scikit_learn():
    code = """
import sys, langevin
assert "sklearn" not in sys.modules
sys.modules["sklearn"] = None  # as if it were not installed
try:
    langevin.BayesianTextClassifier
except langevin.LangevinError as error:
    print(error)
del sys.modules["sklearn"]
langevin.BayesianTextClassifier()
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "install langevin[estimator]" in done.stdout


def test_a_temperature_is_a_number(tmp_path):
    assert BayesianTextClassifier().temperature == load_recipe("classify").sampler.temperature == 0.01
    with pytest.raises(ValueError, match=r"temperature = 'auto' is gone, .* 0\.01 for sentences"):
        BayesianTextClassifier(**TINY, temperature="auto", folder=tmp_path / "run").fit(TEXTS, LABELS)
    assert not (tmp_path / "run").exists()


def test_commands_answer_with_the_labels_that_were_given(cli, fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    code, printed, _ = cli("classify", tmp_path / "saved", "where is Rome ?", "--json")
    assert code == 0
    assert json.loads(printed)["texts"][0]["label"] == fitted.predict(["where is Rome ?"])[0]


@pytest.mark.parametrize("labels", [[10, 9], ["10", "9"], [" a", "a"], [1.0, 2.0], [False, True], ["b", "a"]])
def test_classes_of_all_kinds_come_back(tmp_path, labels):
    chosen = [labels[label == "place"] for label in LABELS]
    made = BayesianTextClassifier(**TINY | {"epochs": 1, "burn_in": 0}).fit(TEXTS, chosen)
    made.save(tmp_path / "saved")
    back = BayesianTextClassifier.load(tmp_path / "saved")
    assert back.classes_.tolist() == sorted(labels)
    assert back.classes_.dtype == made.classes_.dtype
    assert back.predict(TEXTS[:9]).tolist() == made.predict(TEXTS[:9]).tolist()


def test_an_interrupted_fit_keeps_its_classes(cli, tmp_path, monkeypatch):
    with monkeypatch.context() as stopped:
        stopped.setattr("langevin.training.loop.Trainer.run", lambda *_: (_ for _ in ()).throw(Interrupted))
        with pytest.raises(KeyboardInterrupt):
            BayesianTextClassifier(**TINY, folder=tmp_path / "run").fit(TEXTS, LABELS)
    assert cli("resume", tmp_path / "run", "--quiet")[0] == 0
    assert BayesianTextClassifier.load(tmp_path / "run").classes_.tolist() == ["person", "place", "thing"]


def test_a_file_in_the_way_of_the_sentences_is_left_alone(fitted, tmp_path):
    (tmp_path / "run.sentences.jsonl").write_text("precious")
    with pytest.raises(LangevinError, match="where the training sentences go"):
        BayesianTextClassifier(**TINY, folder=tmp_path / "run").fit(TEXTS, LABELS)
    with pytest.raises(LangevinError, match="where the training sentences go"):
        fitted.save(tmp_path / "run")
    assert (tmp_path / "run.sentences.jsonl").read_text() == "precious"


def test_a_fit_that_fails_at_once_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"validation_fraction|the texts"):
        BayesianTextClassifier(**TINY, folder=tmp_path / "run").fit(["a", "b", "c"], ["x", "y", "x"])
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="text number 1 in UTF-8"):
        BayesianTextClassifier(**TINY).fit(["a", "b\ud83d"], ["x", "y"])


def test_a_run_behind_a_link_can_be_pickled(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "saved")
    (tmp_path / "link").symlink_to("saved")
    monkeypatch.chdir(tmp_path / "saved")
    for folder in (tmp_path / "link", "."):
        back = pickle.loads(pickle.dumps(BayesianTextClassifier.load(folder)))
        assert back.predict(TEXTS[:5]).tolist() == fitted.predict(TEXTS[:5]).tolist()


def test_texts_may_come_one_by_one(fitted):
    told = fitted.predict_with_uncertainty(text for text in TEXTS[:4])
    assert len(told["label"]) == len(told["empty"]) == 4
