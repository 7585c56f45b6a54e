"""How sure a run is of what it predicts, and how far that can be believed: any task, any split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.streaming import Moments, Predictions
from ..posterior.uncertainty import uncertainty_score
from ..process import SILENT, Progress
from ..store.samples import Sample
from ..tasks import Task
from ..tasks.base import Carry, Slice
from .opened import Opened
from .results import Uncertainty

TOKENS = 20_000
"""Tokens or words that are looked at unless more are asked for: with 10,000 words and 18 samples,
about a minute."""
BLOCK = 32_000_000
"""Probabilities kept at once, two numbers each: 256 MB in float32."""


@dataclass(frozen=True)
class RankedItems:
    """The uncertainty of a run on a split, and what it was computed from."""

    result: Uncertainty
    predictions: Predictions


def rank_items(
    opened: Opened, task: Task, model: nn.Module, split: str, *, tokens: int = TOKENS,
    top: int = 20, by: str | None = None, made: Predictions | None = None,
    progress: Progress = SILENT,
) -> RankedItems:
    """What `Posterior.rank` says; the model is of the right shape and on its device.

    `made` are the predictions of all items, where they are not those of the samples alone.
    """
    samples = opened.chosen.samples
    check_split(split, task.splits)
    if tokens < 1 or top < 0:
        raise LangevinError(f"expected at least 1 token and no negative number of items, got "
                            f"{tokens} and {top}")
    items = task.items(split, tokens)
    dtype = torch.float64 if items.unit == "sentence" else torch.float32
    made = made or predict(items.slices, items.classes, model, samples, progress, dtype)
    by = by or ("mutual_information" if made.summary.samples > 1 else "entropy")
    summary, ranked = made.summary, uncertainty_score(by, made.summary)
    return RankedItems(Uncertainty(
        task=task.name, run=str(opened.path), split=split, unit=items.unit, samples=summary.samples,
        items=len(made.observed), available=items.available, by=by,
        entropy=summary.total.double().mean().item(),
        aleatoric=summary.aleatoric.double().mean().item(),
        mutual_information=summary.epistemic.double().mean().item(),
        disagreement=summary.disagreement.double().mean().item(),
        unknown_share=items.unknown_share, last=made.last.scores(),
        averaged=made.averaged.scores(), top=tuple(items.most_uncertain(made, ranked, top)),
        skipped=tuple(opened.chosen.skipped),
    ), made)  # fmt: skip


@torch.no_grad()
def predict(
    slices: list[Slice], classes: int, model: nn.Module, samples: Sequence[Sample],
    progress: Progress = SILENT, dtype: torch.dtype = torch.float32,
) -> Predictions:
    """All samples over all slices, block by block: weights of one sample in memory, one recurrent
    state of each.

    A block holds the averaged probabilities of as many items as fit, so that even with 10,000
    classes each sample is loaded only some times.
    """
    blocks = list(blocks_of(slices, BLOCK // classes))
    advance = progress.begin(len(blocks) * len(samples))
    carries: list[Carry] = [None] * len(samples)
    made = []
    model.eval()
    for block in blocks:
        moments = Moments(torch.cat([piece.observed for piece in block]), dtype)
        for number, sample in enumerate(samples):
            sample.load_into(model)
            for piece in block:
                logits, carries[number] = piece.logits(model, carries[number])
                moments.add(logits)
            advance()
        made.append(moments.predictions())
        del moments
    return Predictions.cat(made)


def blocks_of(slices: list[Slice], most: int) -> Iterator[list[Slice]]:
    """Slices one after another, together at most so many items (or one slice)."""
    block, count = list[Slice](), 0
    for piece in slices:
        if block and count + len(piece.observed) > most:
            yield block
            block, count = [], 0
        block.append(piece)
        count += len(piece.observed)
    if block:
        yield block
