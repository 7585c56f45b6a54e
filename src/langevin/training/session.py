"""Start a run, resume it, train it to its end. No printing here."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..process import launcher, prepare_device
from ..recipe import Recipe
from ..store.folder import RECIPE, RunFolder
from ..store.replacement import replacing
from ..tasks import keep_data, open_task, run_recipe
from .budget import fit_recipe
from .jobs import abandoned, stopping_signals
from .loop import Trainer, build
from .parallel import expect_alike, find_group


def start(recipe: Recipe, out: Path, *, overwrite: bool = False, about: dict[str, Any] | None = None) -> Trainer:
    """A trainer in a new run folder, which remembers what is said `about` it; made when all of the
    run is built.

    Where torchrun starts its command anew, the run that it began itself goes on instead.
    """
    group = find_group()
    if began_here(out):
        return resume(out)
    prepare_device(recipe.run.device, recipe.run.threads)
    recipe = group.decide(fit_recipe(recipe))
    task = open_task(recipe)
    parts, facts = build(recipe, task), task.facts | (about or {})
    expect_alike(group, shared_facts(facts))
    if group.number > 0:
        return Trainer(None, task, parts)
    with replacing(out, recipe) if overwrite else contextlib.nullcontext():
        folder = RunFolder.create(out, recipe, task.vocabulary, facts)
        keep_data(task, folder.path)
        return Trainer(folder, task, parts)


def began_here(out: Path) -> bool:
    """Whether torchrun, on this machine or on that of another process, began the run in this
    folder.

    All processes ask together.
    """
    group = find_group()
    ours, began = {known for known in group.gather(launcher()) if known}, False
    if group.number == 0 and ours and (out / RECIPE).is_file():
        with contextlib.suppress(LangevinError):  # whatever it is, it is refused as a target
            began = RunFolder(out).origin.launcher in ours
    return group.decide(began)


def shared_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """What all processes must have in common."""
    return {"data_sha256": facts["data_sha256"], "num_data": facts["num_data"],
            "langevin": version("langevin"), "torch": version("torch")}


def resume(path: Path) -> Trainer:
    """A trainer that stands where the run in this folder stopped."""
    group = find_group()
    folder = RunFolder(path) if group.number == 0 else None
    if folder and folder.chains:
        raise LangevinError(f"expected one run in {path}, got {len(folder.chains)} chains; use chains.resume_chains")
    if folder and folder.origin.teacher is not None:
        from .distil import resume_student  # it stands on this file

        return resume_student(folder)
    known = group.decide((run_recipe(folder), folder.vocabulary, folder.facts) if folder else None)
    assert known is not None
    task = open_task(*known)
    expect_alike(group, shared_facts(task.facts))
    return Trainer(folder, task)


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
