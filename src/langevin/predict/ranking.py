"""How sure a run is of what it predicts, and how far that can be believed: any task, any split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.streaming import Moments, Predictions
from ..posterior.uncertainty import uncertainty_score
from ..store.folder import RunFolder
from ..store.samples import Sample
from ..tasks.base import Carry
from ..tasks.items import Piece, items_of
from ..process import prepare_device
from ..posterior.selection import Selection
from ..tasks import open_run_task
from ..process import Progress, SILENT
from ..posterior.selection import resolve
from ..tasks.choice import choosing

TOKENS = 20_000
"""Tokens or words that are looked at unless more are asked for: with 10,000 words and 18 samples, about a minute."""
BLOCK = 32_000_000
"""Probabilities kept at once, two numbers each: 256 MB in float32."""


@dataclass(frozen=True)
class RunUncertainty:
    """The uncertainty of a run on a split."""

    task: str
    run: str
    split: str
    unit: str
    """What an item is: token, word or sentence."""
    available: int
    """Items of the whole split."""
    by: str
    """The statistic that ranks the items."""
    predictions: Predictions
    top: list[dict[str, Any]]
    """The most uncertain items; captions for a captioner."""
    skipped: list[str]

    @property
    def items(self) -> int:
        return len(self.predictions.observed)

    @property
    def samples(self) -> int:
        return self.predictions.summary.samples

    def numbers(self) -> dict[str, Any]:
        """JSON-ready: means over the items, scores of the last sample and of the average, the most uncertain items."""
        summary = self.predictions.summary
        means = {name: getattr(summary, name).double().mean().item()
                 for name in ("total", "aleatoric", "epistemic", "disagreement")}
        return {
            "task": self.task, "run": self.run, "split": self.split, "unit": self.unit, "samples": self.samples,
            "items": self.items, "available": self.available, "by": self.by, "uncertainty": means,
            "last": self.predictions.last.scores().to_dict(),
            "averaged": self.predictions.averaged.scores().to_dict(),
            "top": without_nan(self.top), "skipped": self.skipped,
        }


def uncertainty_of_run(
    path: Path, split: str = "test", selection: Selection | None = None, *, tokens: int = TOKENS, top: int = 20,
    by: str | None = None, progress: Progress = SILENT,
) -> RunUncertainty:
    """Every item of a split with its uncertainty; of language models and captioners about `tokens` tokens.

    `by` ranks the items: mutual_information (the default where there are several samples), entropy (the default for
    one sample), standard_deviation or max_probability.
    """
    folder = RunFolder(path)
    chosen = resolve(folder, selection or Selection(), choosing(progress))
    samples, skipped = chosen.samples, chosen.skipped
    task = open_run_task(folder)
    check_split(split, task.splits)
    if tokens < 1 or top < 0:
        raise LangevinError(f"expected at least 1 token and no negative number of items, got {tokens} and {top}")
    by = by or ("mutual_information" if len(samples) > 1 else "entropy")
    items = items_of(task, split, tokens)
    model = task.build_model().to(prepare_device(folder.recipe.run.device, folder.recipe.run.threads))
    dtype = torch.float64 if items.unit == "sentence" else torch.float32
    made = predict(items.pieces, items.classes, model, samples, progress, dtype)
    described = items.most_uncertain(made, uncertainty_score(by, made.summary), top)
    return RunUncertainty(task.name, str(path), split, items.unit, items.available, by, made, described, skipped)


@torch.no_grad()
def predict(
    pieces: list[Piece], classes: int, model: nn.Module, samples: Sequence[Sample],
    progress: Progress = SILENT, dtype: torch.dtype = torch.float32,
) -> Predictions:
    """All samples over all pieces, block by block: weights of one sample in memory, one recurrent state of each.

    A block holds the averaged probabilities of as many items as fit, so that even with 10,000 classes each sample is
    loaded only some times.
    """
    blocks = list(blocks_of(pieces, BLOCK // classes))
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


def blocks_of(pieces: list[Piece], most: int) -> Iterator[list[Piece]]:
    """Pieces one after another, together at most so many items (or one piece)."""
    block, count = list[Piece](), 0
    for piece in pieces:
        if block and count + len(piece.observed) > most:
            yield block
            block, count = [], 0
        block.append(piece)
        count += len(piece.observed)
    if block:
        yield block


def without_nan(top: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The scores of a context may be missing: None in JSON."""
    return [
        item | ({"context": [(token, None if score != score else score) for token, score in item["context"]]}
                if "context" in item else {})
        for item in top
    ]
