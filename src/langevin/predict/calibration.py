"""How far probabilities can be believed: of the last sample, of the average, of dropout masks.

On one split, and on texts of another kind: are those less certain?
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from ..data.sentences import KNOWN, read_corpus_of_sentences
from ..data.tables import read_rows
from ..errors import LangevinError
from ..files import read_bytes
from ..posterior.calibration import (
    Reliability,
    auroc,
    calibration_metrics,
    reliability,
    top_label,
)
from ..posterior.scores import Result
from ..posterior.streaming import predictive
from ..posterior.uncertainty import Predictive, statistics_of, uncertainty_score
from ..process import SILENT, Progress
from .classification import ClassificationPosterior
from .encoded import EncodedTexts
from .load import open_as

Bins = dict[str, tuple[float, ...]]
"""The columns of a reliability diagram: lower, upper, count, confidence, accuracy."""


@dataclass(frozen=True)
class MethodScores(Result):
    """One way to predict the sentences of a split."""

    samples: int
    nll: float
    brier: float
    error: float
    ece: float
    ece_equal_mass: float
    bins: Bins

    def reliability(self) -> Reliability:
        try:
            return Reliability(
                **{name: torch.tensor(self.bins[name]) for name in Reliability.__annotations__}
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LangevinError(
                f"expected the bins of a reliability diagram, got {error!r}"
            ) from None


@dataclass(frozen=True)
class OutsideTexts(Result):
    """Texts of another kind beside those of the split."""

    source: str
    texts: int
    auroc: dict[str, dict[str, float]]
    """By method and statistic: P(a text from outside is less certain than one from inside)."""


@dataclass(frozen=True)
class Calibration(Result):
    """Scores and reliability of each way to predict a split."""

    run: str
    split: str
    items: int
    split_sha256: str
    samples: int
    methods: dict[str, MethodScores]
    outside: OutsideTexts | None = None
    skipped: tuple[str, ...] = ()


READER = TypeAdapter(Calibration)


def calibrate(
    posterior: ClassificationPosterior, split: str = "test", masks: int | None = None,
    outside: str | None = None, progress: Progress = SILENT,
) -> Calibration:
    """Each way to predict a split; with `outside`, how well other texts are told from it.

    `masks` of dropout of the last sample; None: as many as there are samples where the model has
    dropout; 0: none.
    """
    groups = {"inside": posterior.split(split)}
    labels = posterior.task.targets[split]
    if outside is not None:
        groups["outside"] = outside_texts(posterior, outside)
    masks = (len(posterior) if posterior.has_dropout else 0) if masks is None else masks
    methods = predict_all(posterior, groups, masks, progress)
    told = Calibration(
        run=str(posterior.path), split=split, items=len(labels),
        split_sha256=posterior.facts["split_sha256"], samples=len(posterior),
        methods={name: score_method(found["inside"], labels) for name, found in methods.items()},
        skipped=tuple(posterior.opened.chosen.skipped),
    )  # fmt: skip
    if outside is None:
        return told
    auroc_of = {name: auroc_by_statistic(found["outside"], found["inside"])
                for name, found in methods.items()}
    return replace(told, outside=OutsideTexts(outside, len(groups["outside"]), auroc_of))


def predict_all(
    posterior: ClassificationPosterior, groups: dict[str, EncodedTexts], masks: int,
    progress: Progress,
) -> dict[str, dict[str, Predictive]]:
    """By method and group; each draw is run once."""
    last, average = "last sample", f"average of {posterior.pool_draws}"
    found: dict[str, dict[str, Predictive]] = {last: {}, average: {}}
    for name, texts in groups.items():
        pieces = [(predictive(each[-1:]), predictive(each))
                  for each in posterior.each_piece(texts, progress)]
        for method, own in zip((last, average), zip(*pieces, strict=True), strict=True):
            found[method][name] = Predictive.cat(own)
    if masks:
        found[f"dropout, {masks} masks"] = {
            name: predictive(posterior.masked_log_probs(texts, masks))
            for name, texts in groups.items()
        }
    return found


def score_method(found: Predictive, labels: Tensor) -> MethodScores:
    """Scores, and the bins of the reliability diagram."""
    bins = reliability(*top_label(found.probabilities, labels))
    log_probs = found.probabilities.clamp_min(torch.finfo(torch.float64).tiny).log()
    columns = {name: tuple(getattr(bins, name).tolist()) for name in Reliability.__annotations__}
    return MethodScores(found.samples, **calibration_metrics(log_probs, labels), bins=columns)


def auroc_by_statistic(outside: Predictive, inside: Predictive) -> dict[str, float]:
    """For each statistic P(a text from outside is less certain than one from inside)."""
    return {name: auroc(uncertainty_score(name, outside), uncertainty_score(name, inside))
            for name in statistics_of(outside.samples)}


def outside_texts(posterior: ClassificationPosterior, source: str) -> EncodedTexts:
    """The texts of a data set by name or of a file, without the empty ones."""
    if source in KNOWN:
        texts = [text for part in read_corpus_of_sentences(source).values() for text in part.texts]
    else:
        texts = read_rows(Path(source), posterior.settings.text_column).texts
    return posterior.encode(texts, free=source not in KNOWN).with_words()


def other_methods(
    path: Path, split: str, progress: Progress = SILENT
) -> tuple[dict[str, MethodScores], str]:
    """The methods of another run, or of what `calibrate --json` printed; and its split's hash.

    A file about another split is refused.
    """
    if path.is_dir():
        posterior = open_as(ClassificationPosterior, path, progress=progress)
        told = calibrate(posterior, split, progress=progress)
    else:
        told = read_calibration(path)
        if told.split != split:
            raise LangevinError(
                f"expected numbers of the {split} split in {path}, got those of {told.split}; "
                f"make it again with --split {split}, or compare on --split {told.split}"
            )
    name = Path(told.run).name
    methods = {f"{name}: {method}": scores for method, scores in told.methods.items()}
    return methods, told.split_sha256


def read_calibration(path: Path) -> Calibration:
    try:
        told = READER.validate_json(read_bytes(path, 1 << 26))
        for method in told.methods.values():
            method.reliability()
    except (ValidationError, LangevinError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise LangevinError(f"expected a run folder or what 'langevin calibrate --json' printed in "
                            f"{path}, it cannot be read: {reason}") from None
    return told
