"""Measured numbers: a finished run → one JSON file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from langevin.errors import LangevinError
from langevin.posterior.streaming import Moments
from langevin.posterior.swag import weight_average
from langevin.predict.caption_scores import facts_of, score_models
from langevin.predict.captioning import BeamSettings, CaptionPosterior
from langevin.predict.load import open_as
from langevin.predict.decision import LabelledPredictions, RiskTarget, has_words, label_split, learn, score_promise
from langevin.store.folder import RunFolder
from langevin.store.weights import load_weights
from langevin.tasks import Task
from langevin.tasks.classification import ClassifyTask
from langevin.process import prepare_device
from langevin.posterior.selection import best_of
from langevin.predict.load import open_posterior
from langevin.predict.results import Evaluation

from .numbers import FORMAT
from .questions import MASKS
from langevin.process import Progress, SILENT
from langevin.posterior.selection import EVERYTHING

RISK = RiskTarget("risk", 0.05)
"""At most so many errors among the accepted answers, with the usual confidence."""


def record(path: Path, progress: Progress = SILENT) -> dict[str, Any]:
    """Validation and test numbers of a finished run, with the collection that validation prefers.

    Beside them on the test split: the mean of the weights where the samples are of one chain, and
    Monte-Carlo dropout with the last weights where the model has dropout. For captions also the
    COCO metrics, beam 5; for classifiers how well each statistic rejects, and whether a promise of
    RISK holds.
    """
    folder = RunFolder(path)
    far = folder.progress()
    if not far or not far.finished:
        raise LangevinError(f"expected a finished run in {path}; go on with 'langevin resume {path}' first")
    posterior = open_posterior(path, EVERYTHING, progress)
    task = posterior.data
    judgement = Judgement(task)
    found = {split: posterior.evaluate(split, curve=True, see=partial(judgement.see, split), progress=progress)
             for split in ("valid", "test")}
    numbers = {split: numbers_of(evaluation) for split, evaluation in found.items()}
    if not folder.chains:
        numbers["test"]["weight_averaged"] = weight_averaged(folder, task)
    if folder.recipe.model.dropout:
        masked = posterior.evaluate("test", masks=MASKS, progress=progress)
        numbers["test"]["mc_dropout"] = masked.averaged.present()
    valid = numbers["valid"]["curve"]
    how, count = best_of(valid)
    recipe = folder.recipe
    chosen = {"score": task.score, "select": how, "samples": count, "valid": valid[how][count - 1],
              "test": numbers["test"]["curve"][how][count - 1]}
    if recipe.task == "caption":
        add_captions(path, numbers, chosen, progress)
    return {
        "format": FORMAT, "title": recipe.title, "seed": recipe.run.seed, "temperature": found["test"].temperature,
        "seconds": far.seconds, "steps": far.step, "num_data": far.num_data,
        "samples": found["test"].samples, "clipped": far.clipped, "chosen": chosen, **numbers,
        **({"rejection": judgement.rejection()} if recipe.task == "classify" else {}),
        "history": far.lines(), "recipe": recipe.what_is_computed(), **folder.origin.flat(),
    }


def numbers_of(found: Evaluation) -> dict[str, Any]:
    """What is kept of an evaluation."""
    assert found.curve is not None
    return {
        "last": found.last.present(), "averaged": found.averaged.present(),
        "each": [{"step": one.step, "chain": one.chain, **one.scores.present()} for one in found.each],
        "curve": {how: list(line) for how, line in found.curve.items()},
    }


def add_captions(path: Path, numbers: dict[str, Any], chosen: dict[str, Any], progress: Progress) -> None:
    """The COCO metrics of the last sample, of that which validation prefers, of the average, and of
    the collection that validation prefers; each where its other numbers are."""
    run = open_as(CaptionPosterior, path, EVERYTHING)
    scores = [each["nll"] for each in numbers["valid"]["each"]]
    best = scores.index(min(scores))
    collection = RunFolder(path).store().select(chosen["select"], chosen["samples"])
    models = {"averaged": run.draws, "last": run.draws[-1:], "best": [run.draws[best]], "chosen": collection}
    files = {kind: path / f"captions-{kind}.json" for kind in models}
    told = score_models(run, "test", models, BeamSettings(), files, progress)
    test = numbers["test"]
    for kind, numbers_of in {"averaged": test["averaged"], "last": test["last"], "best": test["each"][best],
                             "chosen": chosen.setdefault("metrics", {})}.items():
        numbers_of |= told[kind].metrics
    test |= facts_of(told, BeamSettings())


class Judgement:
    """Gathers the predictions of a classifier's samples as they are evaluated; of other tasks
    nothing."""

    def __init__(self, task: Task) -> None:
        self.task, self.moments = task, dict[str, Moments]()

    def see(self, split: str, log_probs: Tensor) -> None:
        if isinstance(self.task, ClassifyTask):
            self.moments.setdefault(split, Moments()).add(log_probs[has_words(self.task, split)])

    def rejection(self) -> dict[str, Any]:
        """Areas under the test split's risk-coverage curves, and what became of the promise learned
        on validation."""
        assert isinstance(self.task, ClassifyTask)
        judged: dict[str, LabelledPredictions] = {
            split: label_split(self.task, split, moments.result()) for split, moments in self.moments.items()
        }
        areas = {name: curve.aurc for name, curve in judged["test"].curves().items()}
        try:
            rule = learn(RISK, judged["valid"])
        except LangevinError as error:
            return {"aurc": areas, "refused": str(error)}
        promise = {"promised": RISK.value, "statistic": rule.statistic, **score_promise(rule, judged["test"]).to_dict()}
        return {"aurc": areas} | promise


def weight_averaged(folder: RunFolder, task: Task) -> dict[str, float]:
    """Test metrics of one network: the mean of the weights of all samples."""
    model = task.build_model().to(prepare_device(folder.recipe.run.device, folder.recipe.run.threads))
    load_weights(model, weight_average(folder.store().samples), "the average of the weights")
    return task.scores(task.log_probs(model, "test"), "test").present()
