"""Everything that the page about a run tells, gathered: evaluation, uncertainty, diagnosis,
examples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..data.features import named_rows
from ..data.vocabulary import SpelledText
from ..data.folds import check_split
from ..errors import LangevinError
from ..predict.captioning import BeamSettings, CaptionPosterior
from ..predict.language import LanguagePosterior
from ..predict.diagnosis import diagnose_runs
from ..predict.draws import Draws
from ..predict.generation import Drawing
from ..predict.load import open_as
from ..predict.ranking import RankedItems
from ..store.folder import RunFolder
from ..store.manifest import Choice, RunProgress
from ..tasks import Task
from ..tasks.captioning import CaptionTask
from ..tasks.language_model import LanguageModelTask
from ..process import SILENT, Progress
from ..posterior.selection import ALL, Selection, resolve
from ..predict.load import open_posterior
from ..predict.mixing import Diagnosis
from ..predict.results import Evaluation
from ..tasks import open_run_task

SHOWN = 12
"""Items in a list of examples."""
WRITERS = 10
"""Samples that write the example text or captions."""


@dataclass(frozen=True)
class ReportData:
    """What is known of a run. The last six are absent before the first sample."""

    folder: RunFolder
    task: Task
    split: str
    progress: RunProgress | None
    weights: int | None = None
    evaluation: Evaluation | None = None
    collection: Choice | None = None
    """The one that validation chose, where commands average it."""
    ranked: RankedItems | None = None
    diagnosis: tuple[Diagnosis, Draws] | str | None = None
    """Or why there is none."""
    examples: dict[str, Any] | None = None


def gather(
    path: Path, *, split: str | None, tokens: int, skip_damaged: bool = False, progress: Progress = SILENT
) -> ReportData:
    """Run every sample over the split, over some tokens with all their probabilities, and over the
    validation split."""
    folder = RunFolder(path)
    task = open_run_task(folder)
    split = split or ("test" if "test" in task.splits else "valid")
    check_split(split, task.splits)
    far = folder.progress()
    store = folder.store(skip_damaged=skip_damaged)
    if not all(store.by_chain()):
        return ReportData(folder, task, split, far)
    chosen = Selection(ALL, skip_damaged=skip_damaged)
    posterior = open_posterior(path, chosen, progress)
    posterior.data = task
    evaluation = posterior.evaluate(split, curve=True, progress=progress)
    collection = resolve(folder, Selection(skip_damaged=skip_damaged)).choice
    ranked = posterior.rank(split, tokens=tokens, top=SHOWN, progress=progress)
    diagnosis: tuple[Diagnosis, Draws] | str
    try:
        diagnosis = diagnose_runs(
            [path], skip_damaged=skip_damaged, task=task, progress=progress)
    except LangevinError as problem:
        diagnosis = str(problem)
    few = Selection("thinned", store.of_each(WRITERS), 0, skip_damaged)
    return ReportData(
        folder, task, split, far, sum(t.numel() for t in store.samples[-1].load().values()), evaluation,
        collection, ranked, diagnosis, examples(task, folder, split, few),
    )


def examples(task: Task, folder: RunFolder, split: str, selection: Selection) -> dict[str, Any] | None:
    """What the averaged model writes: a text, or captions of some images; a classifier writes
    nothing."""
    if isinstance(task, LanguageModelTask):
        return written_text(task, folder, split, selection)
    if isinstance(task, CaptionTask):
        run = open_as(CaptionPosterior, folder.path, selection)
        images = named_rows(task.features, task.images[split][:6])
        return {"samples": len(run), "images": run.describe(images, BeamSettings())}
    return None


def written_text(task: LanguageModelTask, folder: RunFolder, split: str, selection: Selection) -> dict[str, Any]:
    """A continuation of the beginning of the split, token by token with the samples'
    uncertainty."""
    posterior, vocabulary = open_as(LanguagePosterior, folder.path, selection), task.vocabulary
    given, length = (15, 60) if vocabulary.level == "word" else (60, 300)
    prompt = task.evaluated[split].streams[0, :given].long()
    wrote = list(posterior.continue_tokens(prompt, length, Drawing()))
    start = torch.tensor([vocabulary.start])
    score = posterior.score_tokens(SpelledText(torch.cat([start, prompt, torch.tensor(wrote)])))
    return {
        "prompt": vocabulary.decode(prompt).decode("utf-8", "replace"), "level": vocabulary.level,
        "score": replace(score, tokens=score.tokens[len(prompt):]),
    }  # fmt: skip
