"""The estimator is a scikit-learn classifier (its own checks say so) and the run behind it a run
like any other."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks as checks

import langevin
from langevin import BayesianTextClassifier, LangevinError
from langevin.errors import Interrupted
from langevin.posterior.conformal import learn_sets
from langevin.predict.classification import ClassificationPosterior
from langevin.recipe import load_recipe
from tests.sentences import questions

TEXTS, LABELS = map(list, zip(*questions(), strict=True))
TINY = {"hidden": 8, "lr": 0.02, "epochs": 3, "burn_in": 1, "batch_size": 10, "dropout": 0.0, "threads": 1}


@pytest.fixture(scope="module")
def fitted():
    return BayesianTextClassifier(**TINY).fit(TEXTS, LABELS)


class OnNumbers(BayesianTextClassifier):
    """For scikit-learn's checks, which speak in numbers only: each number of a row becomes a
    word."""

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
    # asked alike: in a batch of another size a processor may round otherwise
    few = [*TEXTS[:3], ""]
    proba, std, told = fitted.predict_proba(few), fitted.predict_std(few), fitted.predict_with_uncertainty(few)
    assert told["probability"].tolist() == proba.max(1).tolist()
    assert (told["std"] == std[range(4), proba.argmax(1)]).all()
    assert told["empty"].tolist() == [False, False, False, True]
    assert set(told) == {"label", "probability", "std", "entropy", "mutual_information", "disagreement", "empty"}
    assert (told["entropy"] >= told["mutual_information"]).all()


def test_the_run_behind_it_is_a_run_like_any_other(fitted):
    posterior = langevin.load(fitted.run_.path)
    assert isinstance(posterior, ClassificationPosterior)
    assert len(posterior) == 4 == sum("average" in line for line in fitted.history_)
    assert posterior.members is not None
    found = [list(one.p.values()) for one in posterior.predict(TEXTS)]
    assert np.allclose(found, fitted.predict_proba(TEXTS), atol=1e-6)
    assert posterior.task.splits == ("train", "valid")


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
    for call in ("predict", "predict_proba", "predict_std", "predict_with_uncertainty", "predict_set"):
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
    assert BayesianTextClassifier().recipe(tmp_path).sampler == load_recipe("classify-words").sampler
    with pytest.raises(ValueError, match=r"temperature = 'auto' is gone, .* 0\.01 for sentences"):
        BayesianTextClassifier(**TINY, temperature="auto", folder=tmp_path / "run").fit(TEXTS, LABELS)
    assert not (tmp_path / "run").exists()


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


def test_a_fit_that_fails_at_once_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"validation_fraction|the texts"):
        BayesianTextClassifier(**TINY, folder=tmp_path / "run").fit(["a", "b", "c"], ["x", "y", "x"])
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="text number 1 in UTF-8"):
        BayesianTextClassifier(**TINY).fit(["a", "b\ud83d"], ["x", "y"])


def test_texts_may_come_one_by_one(fitted):
    told = fitted.predict_with_uncertainty(text for text in TEXTS[:4])
    assert len(told["label"]) == len(told["empty"]) == 4


def test_sets_hold_the_true_class_and_say_when_their_promise_is_not_exact(fitted):
    held_out = fitted.posterior_.predictive(fitted.posterior_.split("valid"))
    with pytest.warns(UserWarning, match="also chose the weights of the members"):
        sets = fitted.predict_set(TEXTS, alpha=0.3)
    rule = learn_sets(held_out.probabilities, fitted.posterior_.task.targets["valid"], alpha=0.3)
    inside = rule.sets(torch.from_numpy(fitted.predict_proba(TEXTS))).numpy()
    assert [own.tolist() for own in sets] == [fitted.classes_[row].tolist() for row in inside]
    assert np.mean([label in own for label, own in zip(LABELS, sets, strict=True)]) > 0.6
    exact = BayesianTextClassifier(**TINY | {"pool": "none", "validation_fraction": 0.3}).fit(TEXTS, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact.predict_set(TEXTS[:3])
    with pytest.raises(LangevinError, match="cannot be promised on 12 validation items"):
        fitted.predict_set(TEXTS[:3], alpha=0.01)
