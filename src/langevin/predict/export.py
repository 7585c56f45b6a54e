"""A run → a folder that stands alone, with what its samples score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..errors import LangevinError
from ..posterior.scores import Scores
from ..recipe.load import validate
from ..store.card import command, model_card, training_command
from ..store.export import (
    ExportConfig,
    ExportMetrics,
    copy_counts,
    describe,
    new_export,
    write_about,
    write_samples,
)
from ..store.folder import RunFolder
from ..store.samples import Sample
from ..posterior.selection import EVERYTHING, Selection
from ..process import SILENT, Progress
from ..store.linear_members import LinearMembers, write_linear_members
from ..tasks.classification import ClassifyTask
from ..tasks.members import averaged_draws, pool_members
from ..tasks.scoring import score_samples
from .base import Posterior
from .classification import ClassificationPosterior
from .load import open_posterior


def export(
    path: Path, out: Path, selection: Selection = EVERYTHING, *, float16: bool = False,
    with_counts: bool = False, overwrite: bool = False, measure: bool = True,
    progress: Progress = SILENT,
) -> ExportConfig:
    """Write the chosen samples of a run into a folder that needs nothing else.

    With `measure` the samples as they are written are evaluated on the test split (and, for
    float16, as they were) where the data are there; otherwise the metrics are those that the run
    noted while it trained. Counts go along only `with_counts`, as they contain the text; linear
    parts of a classifier always do, and the average is then that of the pool.
    """
    folder, out = RunFolder(path), out.resolve()
    with new_export(out, overwrite=overwrite) as making:
        posterior = open_posterior(path, selection, progress)
        chosen, samples = posterior.opened.chosen, posterior.draws
        written = write_samples(making, samples, float16=float16)
        before = samples if float16 else []
        found = measured(posterior, written, before, progress) if measure else None
        config = describe(folder, len(samples), float16=float16)
        if with_counts:
            copy_counts(folder, making)
        linear = linear_members_of(posterior)
        if linear is not None:
            write_linear_members(making, linear.parts, linear.record)
        told = {"metrics": found or noted(folder), "counts": with_counts or None,
                "linear_parts": linear is not None or None}
        config = config.model_copy(update=told)
        run = path.resolve().name
        commands = [training_command(folder, run), command(
            "export", run, out.name, select=chosen.how, samples=selection.samples,
            discard=selection.discard or None, float16=float16 or None,
            with_counts=with_counts or None,
        )]
        card = model_card(config, out.name, validate(config.recipe).to_toml(), commands)
        return write_about(making, config, folder.vocabulary, card)


def measured(
    posterior: Posterior, written: Sequence[Sample], before: Sequence[Sample], progress: Progress
) -> ExportMetrics | None:
    """Of the written samples, and of those before they were rounded; None without the data."""
    try:
        task = posterior.data
    except LangevinError:
        return None
    split, model = "test" if "test" in task.splits else "valid", posterior.model
    advance = progress.begin(len(written) + len(before))
    linear = linear_members_of(posterior)

    def scored(samples: Sequence[Sample]) -> tuple[Scores, Scores]:
        """Of the last sample, and of all with what joins them."""
        each = list[Tensor]()
        found = score_samples(task, model, samples, split, advance, see=each.append)
        if linear is None or not isinstance(task, ClassifyTask):
            return found.last.scores, found.averaged.scores
        texts, means = task.texts[split], task.means.get(split)
        pooled = averaged_draws(pool_members(linear, torch.stack(each), texts, means))
        return found.last.scores, task.scores(pooled, split)

    last, averaged = scored(written)
    return ExportMetrics(
        split=split, source="evaluated when it was exported", samples=len(written),
        last=last.present(), averaged=averaged.present(),
        averaged_float32=scored(before)[1].present() if before else None,
    )


def linear_members_of(posterior: Posterior) -> LinearMembers | None:
    return posterior.members if isinstance(posterior, ClassificationPosterior) else None


def noted(folder: RunFolder) -> ExportMetrics | None:
    """What the run noted of its running average on validation while it trained."""
    progress = folder.progress()
    lines = [line for line in progress.history if line.average] if progress else []
    if not lines or folder.chains:
        return None
    return ExportMetrics(
        split="valid", source="noted while training, all samples", samples=len(lines),
        last=lines[-1].valid, averaged=lines[-1].average or {},
    )
