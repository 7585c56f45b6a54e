"""Samples and counts over one split: what each member says of every token, and the pool of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ..posterior.average import LogMean
from ..posterior.mixture import log_mixture, paired_gain
from ..posterior.scores import ComparedScores
from ..posterior.switching import SHARE, follow
from ..recipe import TextData
from ..store.members import COUNTED, NETWORK, OWN, MembersRecord, read_members
from ..tasks import Task
from ..tasks.classification import ClassifyTask
from ..tasks.counting import (
    counted_log_probs,
    crossed_log_probs,
    learn_counts,
    reading_on_log_probs,
)
from ..tasks.language_model import LanguageModelTask
from .evaluation import best_by_validation
from .opened import Opened
from .results import Evaluation

AT_ONCE = 1 << 16
"""Tokens whose weights are followed at once."""
CLEAR, LEAST = 1.96, 5e-5
"""Standard errors, and nats in any case, from which on a difference is told as one."""
POOL, READING_ON = "pool", ", reading on"
"""Names of lines."""


@dataclass(frozen=True)
class PooledTokens:
    """log p of every observed token of a split, [tokens], by member and together."""

    network: Tensor
    counts: Tensor
    counts_reading_on: Tensor
    """By the counts alone, which go on counting."""
    pooled: Tensor
    adapted: Tensor
    """By the pool, whose counts go on counting, with those of this text beside them, while the
    weights of all parts follow the text."""
    weights: dict[str, float]


def pool_tokens(
    folder: Path, task: LanguageModelTask, split: str, each: Sequence[Tensor]
) -> PooledTokens | None:
    """What `each` sample says of the tokens of a split, pooled with the run's counts.

    None where a run has no counts, and for the text that they were learnt from. Validation is
    foreseen fifth by fifth, by counts of all the rest, as when the members were weighed; reading on
    it is by counts of the training text.
    """
    found = read_members(folder, task.vocabulary) if split != "train" else None
    if found is None:
        return None
    counts = found.counts
    if split == "valid":
        assert isinstance(task.recipe.data, TextData)
        memory = task.recipe.data.counts_megabytes << 20
        static = crossed_log_probs(task, found.record.asked_order, memory)
        counts = learn_counts(task, found.record.asked_order, memory)
    else:
        static = counted_log_probs(counts, task, split)
    return pool_parts(each, static, reading_on_log_probs(counts, task, split), found.record)


def pool_parts(
    each: Sequence[Tensor], static: Tensor, reading_on: list[Tensor], record: MembersRecord
) -> PooledTokens:
    """Samples, pooled with what counts say that stand still, and with counts that read on."""
    weights, parts = record.weights, len(each)
    mean = LogMean()
    for log_p in each:
        mean.add(log_p)
    network = mean.value().double()
    shares = torch.tensor([weights[NETWORK], weights[COUNTED]], dtype=torch.float64)
    own = record.reading_on
    following = shares
    if own is not None:
        following = torch.tensor([own.weights[name] for name in (NETWORK, COUNTED, OWN)]).double()
    prior = torch.cat([following[:1].repeat(parts) / parts, following[1:]])
    members = [*each, *reading_on[: len(following) - 1]]
    return PooledTokens(
        network, static, reading_on[0], log_mixture(torch.stack([network, static]), shares),
        follow_parts(members, prior, own.share if own else SHARE), weights,
    )  # fmt: skip


def follow_parts(each: Sequence[Tensor], prior: Tensor, share: float) -> Tensor:
    """log p̄ of each token by a mixture whose weights follow what was read before it."""
    pieces, now = list[Tensor](), None
    for columns in zip(*(torch.split(log_p, AT_ONCE) for log_p in each), strict=True):
        log_p = torch.stack([column.double() for column in columns])
        trace, now = follow(log_p, prior, now, share)
        pieces.append(log_mixture(log_p, trace))
    return torch.cat(pieces)


def add_pool(
    result: Evaluation, opened: Opened, task: Task, model: nn.Module, each: Sequence[Tensor]
) -> Evaluation:
    """The evaluation of samples, with the other members of the run and the pool.

    `each` has the log-probabilities of the samples that were averaged.
    """
    if not isinstance(task, LanguageModelTask):  # of a student that has just learnt
        return result
    tokens = pool_tokens(opened.path, task, result.split, each)
    if tokens is None:
        return result
    one = one_network(opened, task, model, result.split, each)
    lines = compare_lines(tokens, task, result.split, len(each), one)
    scores = {line.name: line.scores for line in lines}
    return replace(
        result, pooled=scores[POOL], adapted=scores[POOL + READING_ON],
        members={NETWORK: result.averaged, COUNTED: scores[COUNTED]}, weights=tokens.weights,
        compared=lines, verdict=say_better(tokens),
    )  # fmt: skip


def one_network(
    opened: Opened, task: LanguageModelTask | ClassifyTask, model: nn.Module, split: str,
    each: Sequence[Tensor],
) -> tuple[str, Tensor]:  # fmt: skip
    """What the others are compared with: the best sample by validation, or the last.

    `each` are log-probabilities by the samples that are averaged; another one is computed.
    """
    best = best_by_validation(opened)
    if best is None:
        return "last sample", each[-1]
    known = {(sample.chain, sample.step): log_p
             for sample, log_p in zip(opened.chosen.samples, each, strict=True)}
    if (best.chain, best.step) not in known:
        best.load_into(model)
        known[best.chain, best.step] = task.log_probs(model, split)
    return "one network", known[best.chain, best.step]


def compare_lines(
    tokens: PooledTokens, task: LanguageModelTask, split: str, samples: int,
    one: tuple[str, Tensor],
) -> tuple[ComparedScores, ...]:  # fmt: skip
    """Each model with its gain over one network, which comes first."""
    lines = [
        (f"average of {samples}", tokens.network), (COUNTED, tokens.counts),
        (POOL, tokens.pooled), (COUNTED + READING_ON, tokens.counts_reading_on),
        (POOL + READING_ON, tokens.adapted),
    ]  # fmt: skip
    name, base = one
    return (
        ComparedScores(name, task.scores(base, split)),
        *(ComparedScores(name, task.scores(log_p, split), *paired_gain(-log_p, -base))
          for name, log_p in lines),
    )  # fmt: skip


def say_better(tokens: PooledTokens) -> str:
    """One sentence: is the pool worth it, or do counts or samples foresee as well by themselves?"""
    alone = {"the average of the samples": tokens.network, COUNTED: tokens.counts}
    return say_whether_better(tokens.pooled, alone, "token", plural=COUNTED)


def say_whether_better(
    pooled: Tensor, alone: Mapping[str, Tensor], unit: str, *, plural: str = ""
) -> str:
    """Is a pool better than its best member? From log p of what was observed, by name."""
    name = max(alone, key=lambda member: float(alone[member].mean()))
    gain, error = paired_gain(-pooled, -alone[name], in_order=unit == "token")
    by = f"{abs(gain):.4f}" + ("" if error is None else f" ± {error:.4f}") + f" nats a {unit}"
    if abs(gain) < max(LEAST, CLEAR * (error or 0.0)):
        return f"The pool foresees no better than {name} alone: {by} are between them."
    if gain > 0:
        return f"The pool foresees better than its best member alone, {name}, by {by}."
    verb = "foresee" if name == plural else "foresees"
    return f"{name[0].upper()}{name[1:]} alone {verb} better than the pool, by {by}."
