"""Members of a classifier beside its samples: linear parts, fitted on training, weighed on
validation, and never refitted on it, so that what is learnt from validation later keeps its
promise.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..errors import LangevinError
from ..models.linear import LinearPosterior
from ..models.linear_fit import cross_fit, fit_linear
from ..models.sentence_features import Items
from ..posterior.average import LogMean
from ..posterior.log_pool import FLOOR, pool_draws, weigh, weigh_apart
from ..posterior.selection import names_of, resolve
from ..process import SILENT, Progress, prepare_device
from ..recipe import SentenceData
from ..store.folder import RunFolder
from ..store.linear_members import (
    MEANS,
    NGRAMS,
    RECURRENT,
    LinearMembers,
    PoolRecord,
    has_linear_members,
    read_linear_members,
    write_linear_members,
)
from ..store.lock import lock_folder
from . import open_run_task
from .classification import ClassifyTask

FEW = 200
"""Validation sentences below which folds of training choose the prior variance of a linear part:
they are more, and validation is left to weigh the members."""
log = logging.getLogger("langevin")


def wants_linear_members(folder: RunFolder) -> bool:
    """Whether the recipe of a run is one of a classifier that asks for a pool."""
    data = folder.recipe.data
    return isinstance(data, SentenceData) and data.pool == "auto"


def fit_members(task: ClassifyTask, folder: RunFolder, network: Tensor) -> LinearMembers:
    """Fit the linear parts, weigh them against the network's draws, keep all in the folder.

    `network` has the log-probabilities of the validation sentences by the samples that are
    averaged, [draws, sentences, classes].
    """
    parts = {NGRAMS: fit_part(task, task.texts)}
    if task.means:
        parts[MEANS] = fit_part(task, task.means)
    observed = task.targets["valid"]
    members = {RECURRENT: network} | log_probs_of_parts(
        parts, task.labels, task.texts["valid"], task.means.get("valid")
    )
    weights = weigh_members(members, observed, out_of_fold(task, parts))
    pooled = pool_draws(list(members.values()), list(weights.values()))
    answers = {name: averaged_draws(log_p)
               for name, log_p in (members | {"pool": pooled}).items()}  # fmt: skip
    record = PoolRecord(
        classes=tuple(task.labels), samples=names_of(folder.store().samples), items=len(observed),
        weights=weights, nll={name: surprise(log_p, observed) for name, log_p in answers.items()},
        error={name: wrong(log_p, observed) for name, log_p in answers.items()},
        files=dict.fromkeys(parts, "0" * 64), bytes=0,
    )  # fmt: skip
    if task.data.refit:
        record = record.model_copy(update={"refitted": True})
        parts = {name: refit_part(task, part, task.texts if name == NGRAMS else task.means)
                 for name, part in parts.items()}  # fmt: skip
    written = write_linear_members(folder.path, parts, record)
    announce(written.record)
    return written


def weigh_members(
    members: Mapping[str, Tensor], observed: Tensor, crossed: tuple[dict[str, Tensor], Tensor]
) -> dict[str, float]:  # fmt: skip
    """The weights of all members; of the linear parts alone unless the network is seen to add.

    Seen is a gain on validation above one standard error, each fifth of it pooled by weights from
    the others. Linear parts alone are weighed by `crossed` items, too: scores out of fold, and what
    was observed of these.
    """
    linear = {name: torch.cat([log_p, crossed[0][name]], 1)
              for name, log_p in members.items() if name != RECURRENT}  # fmt: skip
    every = torch.cat([observed, crossed[1]])
    if len(observed) > 1:
        with_network = weigh_apart(members, observed)
        gain = with_network - weigh_apart(linear, every)[: len(observed)]
        if float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain)):
            return weigh(members, observed)
    return {RECURRENT: 0.0} | weigh(linear, every)


def out_of_fold(
    task: ClassifyTask, parts: Mapping[str, LinearPosterior]
) -> tuple[dict[str, Tensor], Tensor]:  # fmt: skip
    """Log-probabilities of training by fits without each fold, where validation is too short to
    weigh linear parts; of no items elsewhere."""
    found, observed = dict[str, Tensor](), task.targets["train"]
    if len(task.targets["valid"]) >= FEW:
        return {name: torch.zeros(part.draws, 0, len(task.labels))
                for name, part in parts.items()}, observed[:0]  # fmt: skip
    for name, part in parts.items():
        items = task.texts["train"] if name == NGRAMS else task.means["train"]
        log_p = cross_fit(items, [task.labels[number] for number in observed.tolist()],
                          part.classes, choice=part.choice, class_weight=task.data.class_weight,
                          seed=task.recipe.run.seed)  # fmt: skip
        found[name] = over_classes(log_p, part.classes, task.labels)
    return found, observed


def over_classes(log_p: Tensor, own: Sequence[str], classes: Sequence[str]) -> Tensor:
    """The same over all classes; one that a part does not know has FLOOR."""
    whole = torch.full((*log_p.shape[:2], len(classes)), math.log(FLOOR))
    whole[..., [list(classes).index(label) for label in own]] = log_p
    return whole


def fit_part(task: ClassifyTask, items: Mapping[str, Items]) -> LinearPosterior:
    """On training alone, over the classes that it has."""
    labels = {name: [task.labels[number] for number in task.targets[name].tolist()]
              for name in ("train", "valid")}  # fmt: skip
    seen = [label for label in task.labels if label in set(labels["train"])]
    known = [row for row, label in enumerate(labels["valid"]) if label in set(seen)]
    valid = None
    if len(known) >= FEW:
        own = items["valid"]
        chosen = own[torch.tensor(known)] if isinstance(own, Tensor) else [own[n] for n in known]
        valid = chosen, [labels["valid"][row] for row in known]
    return fit_linear(items["train"], labels["train"], seen, valid=valid,
                      class_weight=task.data.class_weight, seed=task.recipe.run.seed)


def refit_part(
    task: ClassifyTask, part: LinearPosterior, items: Mapping[str, Items]
) -> LinearPosterior:  # fmt: skip
    """On training and validation, with what was chosen before."""
    train, valid = items["train"], items["valid"]
    both: Items = (torch.cat([train, valid]) if isinstance(train, Tensor) and
                   isinstance(valid, Tensor) else [*train, *valid])  # fmt: skip
    labels = [task.labels[number] for name in ("train", "valid")
              for number in task.targets[name].tolist()]  # fmt: skip
    seen = [label for label in task.labels if label in set(labels)]
    return fit_linear(both, labels, seen, choice=part.choice, class_weight=task.data.class_weight,
                      seed=task.recipe.run.seed)


def log_probs_of_parts(
    parts: Mapping[str, LinearPosterior], classes: Sequence[str], texts: Sequence[str],
    means: Tensor | None,
) -> dict[str, Tensor]:  # fmt: skip
    """log p [draws, texts, classes] by each linear part; a class that training lacked has FLOOR."""
    found = {}
    for name, part in parts.items():
        if name == MEANS and means is None:
            raise LangevinError("expected mean states of an encoder for a linear part that reads "
                                "them, got none; read the texts with the run's encoder")
        log_p = part.log_probs(means if name == MEANS and means is not None else list(texts))
        found[name] = over_classes(log_p, part.classes, classes)
    return found


def pool_members(
    members: LinearMembers, network: Tensor, texts: Sequence[str], means: Tensor | None
) -> Tensor:
    """log p [draws, texts, classes] of the pool, from the network's draws and the texts.

    A text of white space alone keeps the network's answer, the shares of the classes.
    """
    record = members.record
    found = {RECURRENT: network} | log_probs_of_parts(members.parts, record.classes, texts, means)
    pooled = pool_draws(list(found.values()), [record.weights[name] for name in found])
    blank = torch.tensor([not text.strip() for text in texts])
    cycled = network.index_select(0, torch.arange(len(pooled)) % len(network))
    return torch.where(blank[:, None], cycled, pooled)


def add_linear_members(
    folder: RunFolder, progress: Progress = SILENT, *, anew: bool = False
) -> LinearMembers:
    """Members for a run that is finished, once: those that fit its samples are left as they are."""
    with lock_folder(folder.path):
        if has_linear_members(folder.path) and not anew:
            known = read_linear_members(folder.path)
            if known and known.record.samples == names_of(folder.store().samples):
                return known
        refuse_unready(folder)
        task, run = open_run_task(folder), folder.recipe.run
        assert isinstance(task, ClassifyTask)
        model = task.build_model().to(prepare_device(run.device, run.threads))
        samples, draws = resolve(folder).samples, list[Tensor]()
        advance = progress.begin(len(samples))
        for sample in samples:
            sample.load_into(model)
            draws.append(task.log_probs(model, "valid"))
            advance()
        return fit_members(task, folder, torch.stack(draws))


def refuse_unready(folder: RunFolder) -> None:
    """Linear parts join what is not going to change."""
    if folder.recipe.task != ClassifyTask.name:
        raise LangevinError(f"expected the run of a classifier in {folder.path}, got one of "
                            f"{folder.recipe.task}; linear parts are for labelled sentences")
    progress = folder.progress()
    if progress is None or not progress.finished:
        raise LangevinError(f"expected a finished run in {folder.path}, it is to go on; run "
                            f"'langevin resume {folder.path}' first")


def averaged_draws(log_p: Tensor) -> Tensor:
    mean = LogMean()
    for draw in log_p:
        mean.add(draw)
    return mean.value()


def surprise(log_p: Tensor, observed: Tensor) -> float:
    """−log p of what was observed, a mean over items."""
    return -float(log_p.double().gather(1, observed[:, None]).mean())


def wrong(log_p: Tensor, observed: Tensor) -> float:
    """The share of items whose likeliest class is not the observed one."""
    return float((log_p.argmax(-1) != observed).double().mean())


def announce(record: PoolRecord) -> None:
    """Say what each member is worth, and plainly where a linear part alone is no worse."""
    log.info("members by validation, nll (weight): %s; pool %.3f", ", ".join(
        f"{name} {record.nll[name]:.3f} ({weight:.2f})" for name, weight in record.weights.items()
    ), record.nll["pool"])
    if not record.weights[RECURRENT]:
        log.info("validation shows no gain by the network: linear parts answer alone")
        return
    best = min(record.files, key=lambda name: record.nll[name])
    if record.nll[best] <= record.nll["pool"]:
        log.info("by validation the linear part over %s alone is better than the pool", best)
    elif record.nll[best] <= record.nll[RECURRENT]:
        log.info("by validation the linear part over %s is better than the network", best)
