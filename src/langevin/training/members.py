"""What joins the samples of a finished run: linear parts of a classifier (`tasks/members.py`), or
counts of its text, and the weights of both.

The weights are chosen on validation, each fifth of it foreseen by counts that have not seen it,
before the counts take validation in. All of it is a function
of the run's data and samples, so whoever was killed here begins here again.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from ..errors import LangevinError
from ..models.spelling import Spelling
from ..posterior.average import LogMean
from ..posterior.mixture import FEWEST, fit_weights, log_mixture
from ..posterior.switching import fit_share
from ..posterior.selection import names_of, resolve
from ..process import SILENT, Progress, prepare_device
from ..recipe import TextData
from ..store.folder import RunFolder
from ..store.linear_members import PoolRecord
from ..store.lock import lock_folder
from ..store.members import (
    COUNTED,
    NETWORK,
    OWN,
    Members,
    MembersRecord,
    ReadingOn,
    read_members,
    vocabulary_sum,
    write_members,
)
from ..tasks.counting import (
    choose_counts,
    count_split,
    counted_log_probs,
    crossed_log_probs,
    reading_on_log_probs,
    unknown_words,
    windows_of,
)
from ..tasks.language_model import LanguageModelTask
from ..tasks.members import add_linear_members, wants_linear_members

WINDOW = {"word": 40}
"""Tokens of the windows whose surprise is kept; of bytes and characters 200."""
PERCENTILES = tuple(number / 100 for number in range(101))
log = logging.getLogger("langevin")


def wants_members(folder: RunFolder) -> bool:
    """Whether the recipe of a run asks for counts."""
    data = folder.recipe.data
    return isinstance(data, TextData) and data.pool == "counts"


def add_wanted_members(
    folder: RunFolder, progress: Progress = SILENT
) -> MembersRecord | PoolRecord | None:
    """Those that the recipe of a finished run asks for; None where it asks for none."""
    if wants_members(folder):
        return add_members(folder, progress)
    if wants_linear_members(folder):
        return add_linear_members(folder, progress).record
    return None


def add_members(
    folder: RunFolder, progress: Progress = SILENT, *, anew: bool = False
) -> MembersRecord:
    """Learn counts, weigh them against the samples that are averaged, keep both in the folder.

    Members that fit to the samples of the run are left as they are, unless they are wanted `anew`.
    """
    refuse_unfinished(folder)
    with lock_folder(folder.path):
        folder.sweep()
        names = names_of(folder.store().samples)
        known = None if anew else sound_members(folder)
        if known is not None and known.record.samples == names:
            return known.record
        task = LanguageModelTask(folder.recipe, folder.vocabulary, folder.facts)
        network = average_on_validation(folder, task, progress)
        assert isinstance(folder.recipe.data, TextData)
        choice = choose_counts(task, folder.recipe.data.counts_megabytes << 20)
        counts, order = choice.counts, choice.counts.order
        clean = counted_log_probs(counts, task, "valid")
        crossed = crossed_log_probs(task, order, counts.memory)
        both = torch.stack([network.double(), crossed])
        weights = fit_weights(both)
        reading_on = weigh_reading_on(network, reading_on_log_probs(counts, task, "valid"))
        surprise = -log_mixture(torch.stack([both[0], clean]), weights)
        count_split(counts, task, "valid")
        window = WINDOW.get(task.vocabulary.level, 200)
        record = MembersRecord(
            vocabulary=vocabulary_sum(task.vocabulary), samples=names, order=counts.order,
            asked_order=order, bytes=counts.bytes,
            nll_by_order={str(tried): nll for tried, nll in choice.nll.items()},
            weights=dict(zip((NETWORK, COUNTED), weights.tolist(), strict=True)),
            reading_on=reading_on, weighed=both.shape[1] >= FEWEST, tokens=both.shape[1],
            nll=dict(zip((NETWORK, COUNTED, "pool"), nll_of(*both, log_mixture(both, weights)),
                         strict=True)),
            surprise=windows_of(surprise, window, PERCENTILES), window=window,
            file_sha256="0" * 64,
        )  # fmt: skip
        spelling = Spelling.learn(unknown_words(task))
        return write_members(folder.path, record, counts, spelling)


def weigh_reading_on(network: Tensor, counted: list[Tensor]) -> ReadingOn | None:
    """By what each says of the tokens of validation, where counts read on; None for too few."""
    each = torch.stack([network.double(), *counted])
    if each.shape[1] < FEWEST:
        return None
    weights = fit_weights(each)
    named = dict(zip((NETWORK, COUNTED, OWN), weights.tolist(), strict=True))
    return ReadingOn(weights=named, share=fit_share(each, weights))


def refuse_unfinished(folder: RunFolder) -> None:
    """Members join what is not going to change."""
    if folder.recipe.task != LanguageModelTask.name:
        raise LangevinError(f"expected the run of a language model in {folder.path}, got one of "
                            f"{folder.recipe.task}; counts foresee texts alone")
    progress = folder.progress()
    if progress is None or not progress.finished:
        raise LangevinError(f"expected a finished run in {folder.path}, it is to go on; run "
                            f"'langevin resume {folder.path}' first")


def sound_members(folder: RunFolder) -> Members | None:
    """Those that are there; None where there are none, or damaged ones."""
    try:
        return read_members(folder.path, folder.vocabulary)
    except LangevinError as error:
        log.warning("made again: %s", error)
        return None


def average_on_validation(
    folder: RunFolder, task: LanguageModelTask, progress: Progress
) -> Tensor:
    """log p̄ of each token of validation by the samples that are averaged unless told otherwise."""
    run, samples = folder.recipe.run, resolve(folder).samples
    model = task.build_model().to(prepare_device(run.device, run.threads))
    mean, advance = LogMean(), progress.begin(len(samples))
    for sample in samples:
        sample.load_into(model)
        mean.add(task.log_probs(model, "valid"))
        advance()
    return mean.value()


def nll_of(*log_p: Tensor) -> list[float]:
    return [-float(each.double().mean()) for each in log_p]

