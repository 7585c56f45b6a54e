"""How far probabilities can be believed: last sample, average and Monte-Carlo dropout on one split, and other texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.folds import check_split
from ..data.sentences import KNOWN, read_corpus_of_sentences
from ..data.tables import read_rows
from ..errors import LangevinError
from ..posterior.calibration import Reliability, auroc, calibration_metrics, reliability, top_label
from ..posterior.streaming import Moments
from ..posterior.uncertainty import Predictive, statistics_of, uncertainty_score
from .classification import Classifier
from ..process import Progress, SILENT


def calibrate_run(
    classifier: Classifier, split: str = "test", mc_dropout: int | None = None, outside: str | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Scores and reliability of each way to predict, JSON-ready; with `outside`, how well other texts are told apart.

    `mc_dropout` masks of the last sample; None: as many as there are samples if the model has dropout; 0: none.
    """
    task = classifier.open_task()
    check_split(split, task.splits)
    masks = (len(classifier.samples) if classifier.has_dropout else 0) if mc_dropout is None else mc_dropout
    groups = {"inside": task.sentences[split]}
    if outside is not None:
        groups["outside"] = worded(classifier, outside)
    methods = predict_all(classifier, groups, masks, progress.begin(len(classifier.samples) + masks))
    labels = task.targets[split]
    result: dict[str, Any] = {
        "run": str(classifier.folder.path), "split": split, "sentences": len(labels),
        "split_sha256": classifier.folder.facts["split_sha256"], "samples": len(classifier.samples),
        "skipped": classifier.skipped, "methods": {n: scores(p["inside"], labels) for n, p in methods.items()},
        "outside": None,
    }
    if outside is not None:
        told = {name: told_apart(p["outside"], p["inside"]) for name, p in methods.items()}
        result["outside"] = {"source": outside, "texts": len(groups["outside"]), "auroc": told}
    return result


def predict_all(
    classifier: Classifier, groups: dict[str, Sequence[Tensor]] | dict[str, list[Tensor]], masks: int, advance: Any
) -> dict[str, dict[str, Predictive]]:
    """{method: {group: predictions}}; each sample is run once."""
    average = {name: Moments() for name in groups}
    last: dict[str, Moments] = {}
    for predicted in classifier.each(groups):
        last = {name: Moments() for name in groups}
        for name, log_probs in predicted.items():
            average[name].add(log_probs)
            last[name].add(log_probs)
        advance()
    made = {"last sample": last, f"average of {len(classifier.samples)}": average}
    results = {method: {name: m.result() for name, m in moments.items()} for method, moments in made.items()}
    if masks:
        results[f"dropout, {masks} masks"] = classifier.predict(groups, advance, masks)
    return results


def scores(given: Predictive, labels: Tensor) -> dict[str, Any]:
    """NLL, Brier, ECE, error, and the bins of the reliability diagram."""
    bins = reliability(*top_label(given.probabilities, labels))
    log_probs = given.probabilities.clamp_min(torch.finfo(torch.float64).tiny).log()
    return calibration_metrics(log_probs, labels) | {
        "samples": given.samples, "bins": {name: getattr(bins, name).tolist() for name in Reliability.__annotations__},
    }


def told_apart(outside: Predictive, inside: Predictive) -> dict[str, float]:
    """For each statistic the probability that a text from outside is less certain than one from inside."""
    return {name: auroc(uncertainty_score(name, outside), uncertainty_score(name, inside))
            for name in statistics_of(outside.samples)}


def worded(classifier: Classifier, source: str) -> list[Tensor]:
    """The texts of a data set by name or of a file, without the empty ones."""
    if source in KNOWN:
        texts = [text for part in read_corpus_of_sentences(source).values() for text in part.texts]
    else:
        texts = read_rows(Path(source), classifier.data.text_column).texts
    return [sentence for sentence in classifier.encode(texts, free=source not in KNOWN).sentences if len(sentence)]


def bins_of(method: dict[str, Any]) -> Reliability:
    """The bins of one method of a result, also of one that was read from a file."""
    try:
        return Reliability(**{name: torch.tensor(method["bins"][name]) for name in Reliability.__annotations__})
    except (KeyError, TypeError, ValueError) as error:
        raise LangevinError(f"expected the bins of a reliability diagram, got {error!r}") from None


def other_methods(path: Path, split: str, progress: Progress = SILENT) -> tuple[dict[str, Any], str]:
    """The methods of another run, or of a file that `calibrate --json` made, under its name; and its split's hash.

    A file about another split is refused.
    """
    if path.is_dir():
        result = calibrate_run(Classifier(path), split, progress=progress)
    else:
        try:
            result = json.loads(path.read_text("utf-8"))
            for method in result["methods"].values():
                bins_of(method)
            told = result["split"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, LangevinError) as error:
            raise LangevinError(f"expected a run folder or what 'langevin calibrate --json' printed in {path}, "
                                f"it cannot be read: {error!r}") from None
        if told != split:
            raise LangevinError(f"expected numbers of the {split} split in {path}, got those of {told}; "
                                f"make it again with --split {split}, or compare on --split {told}")
    name = Path(result["run"]).name
    return {f"{name}: {method}": numbers for method, numbers in result["methods"].items()}, result["split_sha256"]
