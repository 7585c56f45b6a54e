"""Scores of a run on one of its splits, or on another text: of each sample, of the last, of the average."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.selection import Selection, resolve
from ..process import SILENT, Progress, prepare_device
from ..store.folder import RunFolder
from ..store.manifest import Choice
from ..tasks import Task, open_run_task
from ..tasks.choice import choosing
from ..tasks.scoring import evaluate


def evaluate_run(
    path: Path, split: str, selection: Selection, text: Path | None = None, progress: Progress = SILENT,
    *, curve: bool = False, mc_dropout: int | None = None, see: Callable[[Tensor], None] = lambda log_probs: None,
    task: Task | None = None,
) -> dict[str, Any]:
    """Metrics of a run on one of its splits, or on another text; with `mc_dropout`, of masks instead of samples.

    Whoever has opened its `task` already need not have its data read again.
    """
    folder = RunFolder(path)
    chosen = resolve(folder, selection, choosing(progress))
    samples, skipped = chosen.samples, chosen.skipped
    task = task or open_run_task(folder)
    if text is not None:
        split = task.add_file(text)
    else:
        check_split(split, task.splits)
    model = task.build_model().to(prepare_device(folder.recipe.run.device, folder.recipe.run.threads))
    advance = progress.begin(mc_dropout or len(samples))
    if mc_dropout:
        if not folder.recipe.model.dropout:
            raise LangevinError(f"Monte-Carlo dropout needs a model trained with dropout, {path} has none")
        numbers = evaluate(task, model, samples[-1:] * mc_dropout, split, advance, curve=curve, masked=True)
    else:
        numbers = evaluate(task, model, samples, split, advance, curve=curve, see=see)
    return {
        "task": task.name, "score": task.score, "run": str(path), "split": split, "select": chosen.how,
        "collection": named_collection(chosen.choice),
        "samples": mc_dropout or len(samples), "mc_dropout": mc_dropout,
        "temperature": folder.recipe.sampler.resolved(task.num_data)[1]["temperature"],
        "threads": torch.get_num_threads(), "skipped": skipped, "trained": training_cost(folder), **numbers,
    }


def named_collection(choice: Choice | None) -> dict[str, Any] | None:
    """Which one "best" is."""
    return {"how": choice.how, "samples": choice.samples} if choice else None


def training_cost(folder: RunFolder) -> dict[str, Any]:
    """What the samples cost to draw, summed over the chains: to compare one chain with several."""
    progress = folder.progress()
    steps, seconds = (progress.step, progress.seconds) if progress else (0, 0.0)
    return {"chains": len(folder.chains) or 1, "steps": steps, "seconds": seconds}
