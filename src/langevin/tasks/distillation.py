"""Any task with softer targets: a student learns the averaged predictions of a teacher instead of
what was observed."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import LangevinError
from ..posterior.average import LogMean
from ..posterior.scores import Scores
from ..store.weights import load_weights, weights
from .base import Batch, Carry, Items, Task
from .shards import WHOLE, Shard

FIT_ON = 20_000
"""Items of the validation split on which the scale of the logits is fitted."""
SCALES = torch.linspace(-0.5, 0.5, 41, dtype=torch.float64).exp()

log = logging.getLogger("langevin")


class DistillTask:
    """`task` with the loss of a student q of the teacher's samples θ_s:

        loss = (1−w)·E[−Σ_y p̄(y|x) log q(y|x)] + w·E[−log q(y_observed|x)],     p̄ = 1/S Σ_s p(·|x,
        θ_s)

    The first term is KL(p̄ ‖ q) but for the entropy of p̄. It is linear in p̄, so the mean of any
    few samples in its place gives an unbiased gradient: `per_row` samples teach each row of a
    batch, in turn (another group of them in the next batch, or in the next epoch where a state is
    carried). A batch then costs `per_row` forward passes of the teacher, not S. As in captioning, a
    batch counts by its items: Σ/(N/B) for N items in B batches.
    """

    def __init__(
        self, task: Task, members: Sequence[nn.Module], start: dict[str, Tensor] | None, *, per_row: int,
        data_weight: float,
    ) -> None:
        self.task, self.members, self.start = task, list(members), start
        self.per_row, self.data_weight = min(per_row, len(self.members)), data_weight
        self.name, self.recipe, self.vocabulary, self.score = task.name, task.recipe, task.vocabulary, task.score
        self.num_data, self.batches_per_epoch, self.carries = task.num_data, task.batches_per_epoch, task.carries
        self.fewest_rows = task.fewest_rows
        self.splits, self.facts = task.splits, task.facts
        self.unit, self.in_order = task.unit, task.in_order

    def add_file(self, path: Path) -> str:
        return self.task.add_file(path)

    def build_model(self) -> nn.Module:
        """From the average of the teacher's weights where the shapes agree."""
        model = self.task.build_model()
        if self.start is not None and shapes(weights(model)) == shapes(self.start):
            load_weights(model, self.start, "the average of the teacher's weights")
        return model

    def prior_means(self) -> dict[str, Tensor]:
        return {}

    def expect_beginning(self) -> None:
        self.task.expect_beginning()

    def training_batch(self, epoch: int, index: int) -> Batch:
        return self.task.training_batch(epoch, index)

    def batches_of(self, split: str) -> Iterator[Batch]:
        return self.task.batches_of(split)

    def logits(self, model: nn.Module, batch: Batch, carry: Carry) -> tuple[Tensor, Tensor, Carry]:
        return self.task.logits(model, batch, carry)

    def log_probs(
        self, model: nn.Module, split: str, mask_seed: int | None = None, shard: Shard = WHOLE
    ) -> Tensor:
        return self.task.log_probs(model, split, mask_seed, shard)

    def observed(self, log_probs: Tensor, split: str) -> Tensor:
        return self.task.observed(log_probs, split)

    def items(self, split: str, limit: int) -> Items:
        return self.task.items(split, limit)

    def outcome(self, split: str, place: int) -> str:
        return self.task.outcome(split, place)

    def scores(self, log_probs: Tensor, split: str) -> Scores:
        return self.task.scores(log_probs, split)

    def loss(
        self, model: nn.Module, epoch: int, index: int, carry: Carry, shard: Shard = WHOLE
    ) -> tuple[Tensor, Carry]:
        """The carried state is a list: the student's layers, then those of every teacher of every
        group of rows.

        Teachers take turns over the rows of a whole batch.
        """
        refuse_shards(shard)
        batch, known = self.training_batch(epoch, index), carry if self.carries and index else None
        own = self.recipe.model.layers
        logits, observed, after = self.logits(model, batch, known[:own] if known else None)
        turn = epoch if self.carries else epoch * self.batches_per_epoch + index
        log_p, states = self.teach(batch, turn, known[own:] if known else None)
        log_q = torch.log_softmax(logits.float(), -1)
        loss = F.nll_loss(log_q, observed, reduction="sum") * self.data_weight
        loss = loss - (log_p.exp() * log_q).sum() * (1 - self.data_weight)
        return loss * (self.batches_per_epoch / self.num_data), [*after, *states] if self.carries else None

    @torch.no_grad()
    def teach(self, batch: Batch, turn: int, carry: Carry = None) -> tuple[Tensor, list[Any]]:
        """log of the mean probabilities of the samples whose turn it is, [items, classes], and
        their states."""
        samples, states, pieces = len(self.members), list[Any](), list[Tensor]()
        groups = min(len(batch[0]), -(-samples // self.per_row))
        for group, rows in enumerate(torch.arange(len(batch[0])).tensor_split(groups)):
            some = tuple(part[rows[0] : rows[-1] + 1] for part in batch)
            mean = LogMean()
            for place in range(self.per_row):
                member = self.members[((group + turn) * self.per_row + place) % samples]
                layers = len(carry) // (groups * self.per_row) if carry else 0
                before = carry[len(states) : len(states) + layers] if carry else None
                logits, _, after = self.logits(member, some, before)
                mean.add(torch.log_softmax(logits.float(), -1))
                states += after or ()
            pieces.append(mean.value())
        return torch.cat(pieces), states

    def as_sample(self, model: nn.Module) -> nn.Module:
        """The student with its logits scaled so that on validation its confidence follows the
        teacher's.

        The scale goes into the output layer, so that every command sees it; tied with the embedding
        it stays at 1.
        """
        if self.recipe.model.tied:
            return model
        scale = self.fit_scale(model)
        scaled = copy.deepcopy(model)
        with torch.no_grad():
            for weight in scaled.get_submodule("output").parameters():
                weight.mul_(scale)
        log.info("the student's logits are scaled by %.4f to follow the confidence of its teacher", scale)
        return scaled

    @torch.no_grad()
    def fit_scale(self, model: nn.Module) -> float:
        """The b that minimises Σ KL(p̄ ‖ softmax(b·z)) over validation: on a grid, then by the
        parabola at its minimum.

        Of b the sum holds Σ [log Σ_y exp(b·z_y) − b·Σ_y p̄_y z_y]: one pass, whatever the number of
        scales.
        """
        model.eval()
        log_sums, linear, items = torch.zeros_like(SCALES), 0.0, 0
        own, carries = None, [None] * len(self.members)
        for batch in self.batches_of("valid"):
            z, _, own = self.logits(model, batch, own)
            mean = LogMean()
            for number, member in enumerate(self.members):
                logits, _, carries[number] = self.logits(member, batch, carries[number])
                mean.add(torch.log_softmax(logits.float(), -1))
            linear += float((mean.value().exp() * z).sum(-1).double().sum())
            log_sums += torch.stack([(z * b).logsumexp(-1).double().sum().cpu() for b in SCALES.tolist()])
            items += len(z)
            if items >= FIT_ON:
                break
        cost = (log_sums - SCALES * linear) / items
        at = min(max(int(cost.argmin()), 1), len(cost) - 2)
        left, middle, right = cost[at - 1 : at + 2].tolist()
        bend, step = left - 2 * middle + right, float(SCALES[1].log() - SCALES[0].log())
        shift = 0.5 * (left - right) / bend if bend > 0 else 0.0
        return float(SCALES[at] * torch.tensor(max(-1.0, min(1.0, shift)) * step).exp())


def refuse_shards(shard: Shard) -> None:
    if shard != WHOLE:
        raise LangevinError("a student learns from whole batches in one process, got a batch in "
                            f"{shard.of} pieces; leave accumulate out, and torchrun")


def shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}
