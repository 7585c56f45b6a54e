"""One sample, the average, the mean of the weights and a student beside each other, with costs."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from ..posterior.average import LogMean, members_of
from ..posterior.calibration import ece
from ..posterior.scores import Scores
from ..posterior.swag import weight_average
from ..process import SILENT, Progress, prepare_device
from ..store.folder import RunFolder
from ..store.samples import Sample, name_of_last
from ..store.weights import load_weights
from ..tasks import Task, model_of
from ..tasks.scoring import SplitScores
from .opened import Opened
from .results import ModelScores


def models_beside(
    opened: Opened, task: Task, model: nn.Module, split: str, found: SplitScores, *,
    student: Path | None, progress: Progress = SILENT,
) -> tuple[ModelScores, ...]:
    """What each model says of a split, its calibration, and its cost.

    `found` has the scores of the single samples and of their average.
    """
    samples = opened.chosen.samples
    last, average = name_of_last(opened.chosen.how), f"average of {len(samples)}"
    members = {last: members_of(model, samples[-1:]), average: members_of(model, samples)}
    label, mean = weights_averaged(model, samples)
    members[label] = [mean]
    if student is not None:
        members[f"student {student.name}"] = students(student, opened)
    known = {last: found.last.scores, average: found.averaged.scores}
    rows = [ModelScores("mean of single samples", mean_scores([e.scores for e in found.each]), 1)]
    advance = progress.begin(len(members))
    for name, models in members.items():
        numbers = known.get(name) or scores_of(task, models, split)
        confidence, correct, seconds = answers(task, models, split)
        calibrated = replace(numbers, ece=ece(confidence, correct))
        rows.append(ModelScores(name, calibrated, len(models), median(seconds)))
        advance()
    single, whole = rows[0].scores.nll, found.averaged.scores.nll
    if abs(single - whole) <= 1e-9:
        return tuple(rows)
    return tuple(replace(row, gap_closed=(single - row.scores.nll) / (single - whole))
                 for row in rows)


def weights_averaged(model: nn.Module, samples: Sequence[Sample]) -> tuple[str, nn.Module]:
    """One network: the mean of the weights, which of several chains would be no network at all."""
    own = [sample for sample in samples if sample.chain == samples[-1].chain]
    middle = copy.deepcopy(model)
    load_weights(middle, weight_average(own), "the average of the weights")
    chain = f" (chain {own[0].chain})" if len(own) < len(samples) else ""
    return f"weights averaged{chain}", middle


def students(path: Path, teacher: Opened) -> list[nn.Module]:
    """The samples of another run, refused when they speak of other words or classes."""
    folder, run = RunFolder(path), teacher.recipe.run
    refuse_other_words(folder, teacher)
    model = model_of(folder.recipe, folder.vocabulary, folder.facts)
    store = folder.store(skip_damaged=bool(teacher.chosen.skipped))
    return members_of(model.to(prepare_device(run.device, run.threads)), store.read())


def refuse_other_words(folder: RunFolder, teacher: Opened) -> None:
    """Predictions can be compared only over the same tokens, or the same classes."""
    facts = ("labels", "tokens", "feature_width")
    ours, theirs = folder.facts, teacher.facts
    different = [key for key in facts if ours.get(key) != theirs.get(key)]
    if folder.recipe.task != teacher.recipe.task:
        different = ["task"]
    elif folder.vocabulary.to_json() != teacher.vocabulary.to_json():
        different = ["vocabulary"]
    if different:
        raise LangevinError(
            f"expected a run with the {different[0]} of {teacher.path}, {folder.path} has another; "
            f"name a student of this run"
        )


def mean_scores(each: Sequence[Scores]) -> Scores:
    """The mean of each number over single samples."""
    names = each[0].present()
    values = {name: [scores.present()[name] for scores in each] for name in names}
    means = {name: sum(v) / len(v) for name, v in values.items() if name != "items"}
    return Scores(items=each[0].items, **means)


def scores_of(task: Task, models: Sequence[nn.Module], split: str) -> Scores:
    """Of the averaged probabilities of some models."""
    mean = LogMean()
    for model in models:
        mean.add(task.log_probs(model, split))
    return task.scores(mean.value(), split)


@torch.no_grad()
def answers(task: Task, models: Sequence[nn.Module], split: str) -> tuple[Tensor, Tensor, list[float]]:
    """Probability of the most probable class under the average, whether it was the observed one, of
    every item.

    Also the seconds that an item took, of every batch.
    """
    seconds = list[float]()
    confidence, correct, carries = list[Tensor](), list[Tensor](), [None] * len(models)
    for model in models:
        model.eval()
    for batch in task.batches_of(split):
        started, mean, targets = time.perf_counter(), LogMean(), torch.empty(0)
        for number, model in enumerate(models):
            logits, targets, carries[number] = task.logits(model, batch, carries[number])
            mean.add(torch.log_softmax(logits.float(), -1))
        best = mean.value().max(-1)
        confidence.append(best.values.exp().cpu())
        correct.append((best.indices == targets).cpu())
        seconds.append((time.perf_counter() - started) / len(targets))
    return torch.cat(confidence), torch.cat(correct), seconds
