"""The linear parts of a classifier at the door: opened, scored beside the network and pooled."""

from __future__ import annotations

import logging
from dataclasses import replace

import torch
from torch import Tensor

from ..posterior.scores import Scores
from ..posterior.selection import names_of
from ..posterior.streaming import Moments, Predictions
from ..store.linear_members import RECURRENT, LinearMembers, read_linear_members
from ..tasks.classification import ClassifyTask
from ..tasks.members import averaged_draws, log_probs_of_parts, pool_members
from .opened import Opened
from .results import Evaluation

log = logging.getLogger("langevin")


def open_members(opened: Opened) -> LinearMembers | None:
    """The linear parts of a run; None where it has none, or has drawn other samples since."""
    if opened.folder is None:
        return None
    members = read_linear_members(opened.folder.path)
    if members is None:
        return None
    store = opened.folder.store(skip_damaged=bool(opened.chosen.skipped))
    if not opened.chosen.skipped and members.record.samples != names_of(store.samples):
        log.warning("the linear parts of %s were weighed with other samples than it has now; they "
                    "are left out, weigh them anew", opened.path)
        return None
    return members


def with_members(
    told: Evaluation, task: ClassifyTask, members: LinearMembers, draws: list[Tensor]
) -> Evaluation:
    """An evaluation of the network's draws with the scores of each member, and of their pool."""
    network, split = torch.stack(draws), told.split
    texts, means = task.texts[split], task.means.get(split)
    parts = log_probs_of_parts(members.parts, members.record.classes, texts, means)
    scores: dict[str, Scores] = {RECURRENT: told.averaged}
    scores |= {name: task.scores(averaged_draws(log_p), split) for name, log_p in parts.items()}
    pooled = averaged_draws(pool_members(members, network, texts, means))
    return replace(told, members=scores, pooled=task.scores(pooled, split))


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
