"""Samples of a run → how well they foresee a split, each alone, averaged, and against each
other."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn

from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.mixture import paired_gain
from ..process import Progress
from ..store.samples import Sample
from ..tasks import Task
from ..tasks.scoring import (
    Across,
    Scored,
    SplitScores,
    kept_of_validation,
    score_samples,
)
from .compare import models_beside
from .opened import Opened
from .results import Evaluation

Gain = tuple[float | None, float | None]
"""Nats per item by which the average is ahead, and the standard error of that."""


def evaluate_samples(
    opened: Opened, task: Task, model: nn.Module, split: str, *, text: Path | None, curve: bool,
    masks: int | None, middle: bool, student: Path | None, see: Callable[[Tensor], None],
    progress: Progress, across: Across | None,
) -> Evaluation:
    """What `Posterior.evaluate` says; the model is of the right shape and on its device."""
    check_masks(opened, masks, beside=middle or student is not None)
    if text is not None:
        split = task.add_file(text)
    else:
        check_split(split, task.splits)
    samples = opened.chosen.samples
    if masks:
        found = score_samples(task, model, samples[-1:] * masks, split, progress.begin(masks),
                              curve=curve, masked=True)
    else:
        found = score_samples(task, model, samples, split, progress.begin(len(samples)),
                              curve=curve, rival=best_by_validation(opened), see=see,
                              kept_by=kept_of_validation if split == "valid" else None,
                              across=across)
    gain = gain_over(found.rival, found, task)
    over_last = gain_over(found.last, found, task) if not masks else (None, None)
    models = models_beside(
        opened, task, model, split, found, student=student, progress=progress,
    ) if middle or student else ()  # fmt: skip
    steps, seconds, finished = training_cost(opened)
    return Evaluation(
        task=task.name, run=str(opened.path), split=split, unit=task.unit, score=task.score,
        how=opened.chosen.how, why=opened.chosen.why, samples=masks or len(samples),
        temperature=temperature_of(opened, task), last=found.last.scores,
        averaged=found.averaged.scores, best_single=found.rival.scores if found.rival else None,
        gain=gain[0], gain_error=gain[1], gain_over_last=over_last[0],
        gain_over_last_error=over_last[1], each=found.each, chains=found.chains, curve=found.curve,
        models=models, masks=masks, steps=steps, seconds=seconds, finished=finished,
        skipped=tuple(opened.chosen.skipped),
    )  # fmt: skip


def best_by_validation(opened: Opened) -> Sample | None:
    """The stored sample of the least nll on validation, as was noted when it was drawn.

    It is the one that early stopping would have kept; an exported folder does not know it.
    """
    progress = opened.folder.progress() if opened.folder else None
    if opened.folder is None or progress is None:
        return None
    noted = {(line.chain or 0, line.step): line.valid.get("nll", math.nan)
             for line in progress.history}
    stored = opened.folder.store(skip_damaged=bool(opened.chosen.skipped)).samples
    known = {number: noted.get((sample.chain, sample.step), math.nan)
             for number, sample in enumerate(stored)}
    finite = [number for number, nll in known.items() if math.isfinite(nll)]
    return stored[min(finite, key=lambda number: known[number])] if finite else None


def gain_over(other: Scored | None, found: SplitScores, task: Task) -> Gain:
    """By how much the average of several samples foresees better than another model."""
    if other is None or len(found.each) < 2:
        return None, None
    return paired_gain(found.averaged.nll, other.nll, in_order=task.in_order)


def check_masks(opened: Opened, masks: int | None, *, beside: bool) -> None:
    if masks and beside:
        raise LangevinError("expected samples to compare, got masks of Monte-Carlo dropout; leave "
                            "--mc-dropout out")
    if masks and not opened.recipe.model.dropout:
        raise LangevinError(
            f"Monte-Carlo dropout needs a model trained with dropout, {opened.path} has none"
        )


def temperature_of(opened: Opened, task: Task) -> float | None:
    value: float | None = opened.recipe.sampler.resolved(task.num_data)[1]["temperature"]
    return value


def training_cost(opened: Opened) -> tuple[int, float, bool]:
    """Steps and seconds that the samples cost, of all chains together, and whether that was all."""
    progress = opened.folder.progress() if opened.folder else None
    return (progress.step, progress.seconds, progress.finished) if progress else (0, 0.0, True)
