"""The collection of samples that validation prefers, found by running all of them over its
split."""

from __future__ import annotations

import logging
from functools import partial

from ..posterior.selection import Choose, best_of, names_of
from ..process import SILENT, Progress, prepare_device
from ..store.folder import RunFolder
from ..store.manifest import Choice
from ..store.samples import Sample
from . import open_run_task
from .scoring import kept_of_validation, score_samples

FEWEST = 4
"""Samples of the best collection, if there are so many: of fewer, one cannot see how far they
disagree."""
log = logging.getLogger("langevin")


def choosing(progress: Progress = SILENT) -> Choose:
    """What `posterior.selection.resolve` calls where nothing is remembered."""
    return partial(choose_by_validation, progress=progress)


def choose_by_validation(
    folder: RunFolder, samples: list[Sample], remember: bool = True, progress: Progress = SILENT
) -> Choice:
    """The collection of at least FEWEST of these samples that validation prefers, and its score.

    Its `samples` is their number of each chain. The folder remembers the choice as long as they
    stay the same; that of some samples only is not to be remembered.
    """
    known, names = folder.choice(), names_of(samples)
    if known and known.of == names:
        return known
    task = open_run_task(folder)
    run = folder.recipe.run
    model = task.build_model().to(prepare_device(run.device, run.threads))
    advance = progress.begin(len(samples))
    found = score_samples(task, model, samples, "valid", advance, curve=True,
                          kept_by=kept_of_validation)
    curves = found.curve
    assert curves is not None
    how, count = best_of(curves, -(-FEWEST // len({sample.chain for sample in samples})))
    log.info("validation prefers the %s collection, %d of %d samples", how, count, len(curves[how]))
    choice = Choice(how=how, samples=count, score=curves[how][count - 1], of=names)
    if remember:
        folder.remember(choice)
    return choice
