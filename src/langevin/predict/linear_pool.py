"""The linear parts of a classifier at the door: opened, scored beside the network and pooled."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from ..posterior.mixture import paired_gain
from ..posterior.scores import ComparedScores
from ..posterior.selection import names_of
from ..posterior.streaming import Moments, Predictions
from ..store.linear_members import RECURRENT, LinearMembers, read_linear_members
from ..tasks.classification import ClassifyTask
from ..tasks.members import averaged_draws, log_probs_of_parts, pool_members
from .opened import Opened
from .pooled import POOL, one_network, say_whether_better
from .results import Evaluation

log = logging.getLogger("langevin")


def open_members(opened: Opened) -> LinearMembers | None:
    """The linear parts of a run; None where it has none, or has drawn other samples since."""
    members = read_linear_members(opened.path)
    if members is None or opened.folder is None:
        return members
    store = opened.folder.store(skip_damaged=bool(opened.chosen.skipped))
    if not opened.chosen.skipped and members.record.samples != names_of(store.samples):
        log.warning("the linear parts of %s were weighed with other samples than it has now; they "
                    "are left out, weigh them anew", opened.path)
        return None
    return members


def add_linear_pool(
    told: Evaluation, opened: Opened, task: ClassifyTask, model: nn.Module, members: LinearMembers,
    each: Sequence[Tensor],
) -> Evaluation:  # fmt: skip
    """An evaluation of the network's draws with the scores of each member, and of their pool."""
    network, split, record = torch.stack(list(each)), told.split, members.record
    texts, means = task.texts[split], task.means.get(split)
    name, base = one_network(opened, task, model, split, each)
    found = {f"average of {told.samples}": averaged_draws(network)}
    parts = average_parts(members, texts, means)
    found |= {name_of_part(part): averaged for part, averaged in parts.items()}
    found[POOL] = averaged_draws(pool_members(members, network, texts, means))
    observed = {line: task.observed(log_p, split) for line, log_p in found.items()}
    scores = {line: task.scores(log_p, split) for line, log_p in found.items()}
    one, pooled = task.observed(base, split), observed[POOL]
    gains = {line: paired_gain(-log_p, -one, in_order=False) for line, log_p in observed.items()}
    alone = {f"the {line}": log_p for line, log_p in observed.items() if line != POOL}
    return replace(
        told, pooled=scores[POOL], weights=record.weights,
        members={RECURRENT: told.averaged} | {part: scores[name_of_part(part)] for part in parts},
        compared=(ComparedScores(name, task.scores(base, split)),
                  *(ComparedScores(line, scores[line], *gains[line]) for line in found)),
        verdict=say_whether_better(pooled, alone, told.unit),
    )  # fmt: skip


def name_of_part(part: str) -> str:
    return f"linear part over {part}"


def average_parts(
    members: LinearMembers, texts: Sequence[str], means: Tensor | None
) -> dict[str, Tensor]:
    """log p̄ of every class by each linear part alone, [texts, classes]."""
    parts = log_probs_of_parts(members.parts, members.record.classes, texts, means)
    return {name: averaged_draws(log_p) for name, log_p in parts.items()}


def predictions_of(pieces: list[Tensor], observed: Tensor) -> Predictions:
    """What remains of draws of some items that were observed, piece after piece."""
    found = []
    parts = torch.split(observed, [log_p.shape[1] for log_p in pieces])
    for log_p, labels in zip(pieces, parts, strict=True):
        moments = Moments(labels)
        for draw in log_p:
            moments.add(draw)
        found.append(moments.predictions())
    return Predictions.cat(found)
