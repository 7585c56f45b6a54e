"""A finished run made longer: it ends with the same bits as if it had been that long from the
start."""

from __future__ import annotations

from pathlib import Path

from ..errors import LangevinError
from ..files import inside
from ..recipe import Recipe
from ..recipe.load import validate
from ..store.checkpoint import load_checkpoint
from ..store.folder import PLATEAU, RunFolder
from ..store.manifest import RunProgress
from ..store.writer import RunWriter


def extend(path: Path, epochs: float) -> str:
    """Let the run in this folder be so many epochs long; what to say of it. `resume` then trains
    it.

    Where the rate is constant, or falls at fixed epochs, it goes on from its end. Where it has
    fallen along with the epochs, it goes on from the end of its plateau, and the samples after that
    are drawn anew.
    """
    folder = RunFolder(path)
    progress = finished_progress(folder)
    now = folder.recipe.run.epochs
    if epochs <= now:
        raise LangevinError(f"expected more epochs than the {now:g} that {path} has, got {epochs:g}; ask for more")
    has_plateau = folder.recipe.run.lr_schedule == "plateau"
    if reason := no_use(progress, has_plateau=has_plateau):
        return reason
    recipe = with_epochs(folder.recipe, epochs)
    edited = "; its recipe was edited since it began, so that this is another run than one made so long at once" * (
        folder.recipe_is_edited)
    writer = RunWriter(folder)
    with writer.held():
        if not has_plateau:
            writer.amend(recipe)
            return f"goes on from epoch {now:g} to {epochs:g}{edited}"
        plateau = load_checkpoint(inside(path, PLATEAU))
        if plateau is None:
            raise LangevinError(f"expected the checkpoint of the end of the plateau in {path}, it is not there; train "
                                f"a new run with --epochs {epochs:g}")
        # Before the recipe: were it cut off here, the run would only fall once more, as it did.
        writer.save(*plateau)
        writer.amend(recipe)
    at = epoch_of(plateau[1].step, progress)
    return (f"goes on from epoch {at:.3g}, where its rate began to fall, to {epochs:g}; its {len(writer.store)} "
            f"samples are drawn anew{edited}")


def finished_progress(folder: RunFolder) -> RunProgress:
    """Of a run that can be made longer; others are refused."""
    if folder.chains:
        raise LangevinError(f"expected one run in {folder.path}, got {len(folder.chains)} chains, which cannot be made "
                            f"longer; train new ones with more epochs")
    if folder.origin.teacher is not None:
        raise LangevinError(f"the student in {folder.path} cannot be made longer: its rate ends at 0; distil anew with "
                            f"more epochs")
    progress = folder.progress()
    if progress is None or not progress.finished:
        raise LangevinError(f"expected a finished run in {folder.path}; end it by 'langevin resume {folder.path}', "
                            f"then make it longer")
    return progress


def no_use(progress: RunProgress, *, has_plateau: bool) -> str:
    """Why a longer run would end where this one did; empty if it would not."""
    step = progress.turned if has_plateau else progress.step if progress.stopped_early else None
    if step is None:
        return ""
    return (f"validation turned at epoch {epoch_of(step, progress):.3g}: a longer run would end as this one did, so "
            f"nothing was changed")


def epoch_of(step: int, progress: RunProgress) -> float:
    line = progress.history[-1]
    return step * line.epoch / line.step


def with_epochs(recipe: Recipe, epochs: float) -> Recipe:
    """The same recipe, checked again."""
    values = recipe.model_dump(mode="json", exclude_none=True)
    values["run"]["epochs"] = epochs
    return validate(values)
