"""Start a run, resume it, train it to its end. No printing here."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..process import prepare_device
from ..recipe import Recipe
from ..store.folder import RunFolder
from ..store.replacement import replacing
from ..tasks import keep_data, open_run_task, open_task
from .budget import fit_recipe
from .jobs import abandoned, stopping_signals
from .loop import Trainer, build


def start(recipe: Recipe, out: Path, *, overwrite: bool = False, about: dict[str, Any] | None = None) -> Trainer:
    """A trainer in a new run folder, which remembers what is said `about` it; made when all of the run is built."""
    recipe = fit_recipe(recipe)
    prepare_device(recipe.run.device, recipe.run.threads)
    task = open_task(recipe)
    parts, facts = build(recipe, task), task.facts | (about or {})
    with replacing(out, recipe) if overwrite else contextlib.nullcontext():
        folder = RunFolder.create(out, recipe, task.vocabulary, facts)
        keep_data(task, folder.path)
        return Trainer(folder, task, parts)


def resume(path: Path) -> Trainer:
    """A trainer that stands where the run in this folder stopped."""
    folder = RunFolder(path)
    if folder.chains:
        raise LangevinError(f"expected one run in {path}, got {len(folder.chains)} chains; use chains.resume_chains")
    if folder.origin.teacher is not None:
        from .distil import resume_student  # it stands on this file

        return resume_student(folder)
    return Trainer(folder, open_run_task(folder))


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
