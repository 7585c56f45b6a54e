"""The steps behind the commands: start, resume, open, evaluate. No printing here."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.folds import check_split
from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..models.language_model import LanguageModel
from ..recipe import Recipe
from ..store.folder import RunFolder
from ..store.manifest import Choice
from ..store.replacement import replacing
from ..store.samples import COLLECTIONS, Sample
from ..tasks import Task, open_task
from ..tasks.language_model import LanguageModelTask, model_of
from ..tasks.scoring import evaluate
from .jobs import abandoned, stopping_signals
from .loop import Trainer, build, prepare_device

BEST = "best"
FEWEST = 4
"""Samples of the best collection, if there are so many: of fewer, one cannot see how far they disagree."""
log = logging.getLogger("langevin")


def start(recipe: Recipe, out: Path, *, overwrite: bool = False, about: dict[str, Any] | None = None) -> Trainer:
    """A trainer in a new run folder, which remembers what is said `about` it; made when all of the run is built."""
    prepare_device(recipe)
    task = open_task(recipe)
    parts, facts = build(recipe, task), task.facts | (about or {})
    with replacing(out, recipe) if overwrite else contextlib.nullcontext():
        return Trainer(RunFolder.create(out, recipe, task.vocabulary, facts), task, parts)


def resume(path: Path) -> Trainer:
    """A trainer that stands where the run in this folder stopped."""
    folder = RunFolder(path)
    if folder.chains:
        raise LangevinError(f"expected one run in {path}, got {len(folder.chains)} chains; use chains.resume_chains")
    if folder.origin.teacher is not None:
        from .distil import resume_student  # it stands on this file

        return resume_student(folder)
    return Trainer(folder, open_run_task(folder))


def open_run_task(folder: RunFolder) -> Task:
    """The task and the data that a run was trained on."""
    return open_task(folder.recipe, folder.vocabulary, folder.facts)


def open_language_task(folder: RunFolder) -> LanguageModelTask:
    """The same, for what only language models can do."""
    refuse_other_task(folder)
    return LanguageModelTask(folder.recipe, folder.vocabulary, folder.facts)


def language_model_of(folder: RunFolder) -> tuple[LanguageModel, Vocabulary]:
    """The model of a run and its tokens, whose training text need not be there."""
    refuse_other_task(folder)
    return model_of(folder.recipe, folder.vocabulary), folder.vocabulary


def refuse_other_task(folder: RunFolder) -> None:
    if folder.recipe.task != LanguageModelTask.name:
        raise LangevinError(f"expected the run of a language model in {folder.path}, got one of {folder.recipe.task}")


def train_until_done(trainer: Trainer, on_step: Callable[[Trainer], None]) -> None:
    """Run; Ctrl-C, SIGTERM or a closed terminal ends it after the batch at hand, with a checkpoint.

    While it evaluates it ends at once.
    """
    asked = False

    def handler(*_: object) -> None:
        nonlocal asked
        asked = True
        if trainer.evaluating:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handler) for number in stopping_signals()}
    try:
        trainer.run(on_step, lambda: asked or abandoned())
    finally:
        for number, old in before.items():
            signal.signal(number, old)


Begin = Callable[[int], Callable[[], None]]
"""Told the number of pieces of work, returns what to call after each."""


@dataclass(frozen=True)
class Selection:
    """Which samples of a run to use: one of the three collections, or "best", see `preferred`."""

    how: str = "thinned"
    samples: int | None = None
    discard: int = 0
    skip_damaged: bool = False


def chosen_collection(path: Path) -> dict[str, Any] | None:
    """What `preferred` last remembered of a run."""
    known = RunFolder(path).choice()
    return known.model_dump(exclude={"format"}) if known else None


def usual(
    path: Path, samples: int | None = None, discard: int = 0, skip_damaged: bool = False, *, whole: bool = False
) -> str:
    """What a command averages that is not told: what validation chose when training ended, or else all samples.

    All, too, where the command is about the `whole` run, and where samples came after the choice.

    Of classifiers all: their validation sentences decide which answers to accept, and should choose nothing else.
    """
    told = samples is not None or discard > 0 or skip_damaged or whole
    if told or not (chosen := chosen_collection(path)):
        return Selection.how
    folder = RunFolder(path)
    holds = list(chosen["of"]) == names_of(folder.store().samples) and folder.recipe.task != "classify"
    return BEST if holds else Selection.how


def names_of(samples: list[Sample]) -> list[str]:
    """By which a choice among samples is told from one among others."""
    return [f"{sample.chain}:{sample.sha256}" for sample in samples]


def select(
    folder: RunFolder, selection: Selection, begin: Begin = lambda n: lambda: None
) -> tuple[list[Sample], list[str]]:
    """The chosen samples, and the damaged ones that were left out."""
    store = folder.store(skip_damaged=selection.skip_damaged)
    how, count = selection.how, selection.samples
    if how == BEST:
        if count is not None:
            raise LangevinError(f"{BEST} chooses how many samples by itself, got {count}; leave --samples out, or name "
                                f"a collection: {', '.join(COLLECTIONS)}")
        some = selection.discard > 0 or selection.skip_damaged
        best = preferred(folder, store.read(discard=selection.discard), begin, remember=not some)
        how, count = best["how"], best["samples"]
    return store.select(how, count, discard=selection.discard), store.skipped


def preferred(
    folder: RunFolder, samples: list[Sample], begin: Begin = lambda n: lambda: None, *, remember: bool = True
) -> dict[str, Any]:
    """The collection of at least FEWEST of these samples that validation prefers, and its score on that split.

    `samples` is their number of each chain. It takes a pass over the validation split for each sample. The folder
    remembers the choice as long as they stay the same; that of some samples only is not to be remembered.
    """
    known, names = chosen_collection(folder.path), names_of(samples)
    if known and list(known["of"]) == names:
        return known
    task = open_run_task(folder)
    model = task.build_model().to(prepare_device(folder.recipe))
    curves = evaluate(task, model, samples, "valid", begin(len(samples)), curve=True)["curve"]
    how, count = best_of(curves, -(-FEWEST // len({sample.chain for sample in samples})))
    log.info("validation prefers the %s collection, %d of %d samples", how, count, len(curves[how]))
    known = {"how": how, "samples": count, "score": curves[how][count - 1], "of": names}
    if remember:
        folder.remember(Choice(how=how, samples=count, score=known["score"], of=tuple(names)))
    return known


def best_of(curves: dict[str, list[float]], fewest: int = 1) -> tuple[str, int]:
    """Where the least score of all collections is, and with how many samples; `fewest` as far as there are so many."""
    scores = {(how, n): score for how, curve in curves.items() for n, score in enumerate(curve, 1)
              if n >= min(fewest, len(curve))}
    return min(scores, key=lambda at: scores[at])


def evaluate_run(
    path: Path, split: str, selection: Selection, text: Path | None = None, begin: Begin = lambda n: lambda: None,
    *, curve: bool = False, mc_dropout: int | None = None, see: Callable[[Tensor], None] = lambda log_probs: None,
    task: Task | None = None,
) -> dict[str, Any]:
    """Metrics of a run on one of its splits, or on another text; with `mc_dropout`, of masks instead of samples.

    Whoever has opened its `task` already need not have its data read again.
    """
    folder = RunFolder(path)
    samples, skipped = select(folder, selection, begin)
    task = task or open_run_task(folder)
    if text is not None:
        split = task.add_file(text)
    else:
        check_split(split, task.splits)
    model = task.build_model().to(prepare_device(folder.recipe))
    advance = begin(mc_dropout or len(samples))
    if mc_dropout:
        if not folder.recipe.model.dropout:
            raise LangevinError(f"Monte-Carlo dropout needs a model trained with dropout, {path} has none")
        numbers = evaluate(task, model, samples[-1:] * mc_dropout, split, advance, curve=curve, masked=True)
    else:
        numbers = evaluate(task, model, samples, split, advance, curve=curve, see=see)
    return {
        "task": task.name, "score": task.score, "run": str(path), "split": split, "select": selection.how,
        "collection": named_collection(path, selection),
        "samples": mc_dropout or len(samples), "mc_dropout": mc_dropout,
        "temperature": folder.recipe.sampler.resolved(task.num_data)[1]["temperature"],
        "threads": torch.get_num_threads(), "skipped": skipped, "trained": training_cost(folder), **numbers,
    }


def named_collection(path: Path, selection: Selection) -> dict[str, Any] | None:
    """Which one "best" is, where that is remembered."""
    best = chosen_collection(path) if selection.how == BEST and not selection.discard else None
    return best and {key: best[key] for key in ("how", "samples")}


def training_cost(folder: RunFolder) -> dict[str, Any]:
    """What the samples cost to draw, summed over the chains: to compare one chain with several."""
    progress = folder.progress()
    steps, seconds = (progress.step, progress.seconds) if progress else (0, 0.0)
    return {"chains": len(folder.chains) or 1, "steps": steps, "seconds": seconds}
