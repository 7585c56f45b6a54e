"""One sample, the average, the average of the weights and a student side by side on one split, with what each costs."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from ..posterior.average import LogMean, members_of
from ..posterior.calibration import ece
from ..posterior.swag import weight_average
from ..store.folder import RunFolder
from ..store.samples import name_of_last
from ..store.weights import load_weights
from ..tasks import Task, model_of
from ..process import prepare_device
from ..posterior.selection import Selection
from ..tasks import open_run_task
from ..process import Progress, SILENT
from ..posterior.selection import resolve
from ..tasks.choice import choosing


def add_models(
    result: dict[str, Any], selection: Selection, text: Path | None = None, student: Path | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """The result of an evaluation with `models` added: what each says, its calibration, and its cost.

    `passes` are forward passes for each item, `seconds_per_1000` is measured on whole batches of the split, every class
    included. `gap_closed` is the share of the difference in NLL between the mean single sample (0) and the average (1).
    """
    if result["mc_dropout"]:
        raise LangevinError("expected samples to compare, got masks of Monte-Carlo dropout; leave --mc-dropout out")
    folder = RunFolder(result["run"])
    samples = resolve(folder, selection, choosing(progress)).samples
    task = open_run_task(folder)
    split = task.add_file(text) if text is not None else result["split"]
    model = task.build_model().to(prepare_device(folder.recipe.run.device, folder.recipe.run.threads))
    own = [sample for sample in samples if sample.chain == samples[-1].chain]
    middle = copy.deepcopy(model)
    load_weights(middle, weight_average(own), "the average of the weights")
    label = "weights averaged" + (f" (chain {own[0].chain})" if len(own) < len(samples) else "")
    last = name_of_last(result["select"])
    members = {last: members_of(model, samples[-1:]), f"average of {len(samples)}": members_of(model, samples)}
    members[label] = [middle]
    if student is not None:
        members[f"student {student.name}"] = students(student, folder, selection.skip_damaged)
    numbers = {last: result["single"], f"average of {len(samples)}": result["averaged"]}
    advance = progress.begin(len(members))
    rows: list[dict[str, Any]] = [{"model": "mean of single samples", "passes": 1, **mean_metrics(result["each"])}]
    for name, models in members.items():
        rows.append({"model": name, "passes": len(models), **(numbers.get(name) or scores(task, models, split))})
        rows[-1] |= calibration_and_cost(task, models, split)
        advance()
    single, average = rows[0]["nll"], result["averaged"]["nll"]
    for row in rows:
        row["gap_closed"] = (single - row["nll"]) / (single - average) if abs(single - average) > 1e-9 else None
    return result | {"models": rows}


def students(path: Path, teacher: RunFolder, skip_damaged: bool = False) -> list[nn.Module]:
    """The samples of another run, refused when they speak of other words or classes."""
    folder = RunFolder(path)
    refuse_other_words(folder, teacher)
    model = model_of(folder.recipe, folder.vocabulary, folder.facts).to(prepare_device(teacher.recipe.run.device, teacher.recipe.run.threads))
    return members_of(model, folder.store(skip_damaged=skip_damaged).read())


def refuse_other_words(folder: RunFolder, teacher: RunFolder) -> None:
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


def mean_metrics(each: list[dict[str, Any]]) -> dict[str, float]:
    """The mean of each number over single samples."""
    names = [name for name in each[0] if name not in ("step", "chain")]
    values = {name: [numbers[name] for numbers in each] for name in names}
    return {name: v[0] if len(set(v)) == 1 else sum(v) / len(v) for name, v in values.items()}


def scores(task: Task, models: Sequence[nn.Module], split: str) -> dict[str, float]:
    """Metrics of the averaged probabilities of some models."""
    mean = LogMean()
    for model in models:
        mean.add(task.log_probs(model, split))
    return task.metrics(mean.value(), split)


def calibration_and_cost(task: Task, models: Sequence[nn.Module], split: str) -> dict[str, float]:
    """Expected calibration error of the averaged answer, and the seconds that 1000 answers take: the median batch's."""
    confidence, correct, seconds = answers(task, models, split)
    return {"ece": ece(confidence, correct), "seconds_per_1000": 1000 * median(seconds)}


@torch.no_grad()
def answers(task: Task, models: Sequence[nn.Module], split: str) -> tuple[Tensor, Tensor, list[float]]:
    """Probability of the most probable class under the average, whether it was the observed one, of every item.

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
