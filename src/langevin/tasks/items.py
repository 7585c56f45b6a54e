"""What a run predicts, item by item: tokens of a text, words of captions, sentences. One class for each task.

Each gives its split as pieces that a model can predict one after another, and tells of single items what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ..data.caption_batches import CaptionBatch
from ..models.captioner import Captioner
from ..posterior.streaming import Predictions
from .base import Carry, Task
from .captioning import SCORED_AT_ONCE, CaptionTask
from .classification import ClassifyTask
from .language_model import LanguageModelTask

PIECE = 1 << 23
"""Logits in one piece, at most where the piece can be cut: 32 MB."""

Context = list[tuple[str, float]]
"""Tokens with the score of each; NaN where there is none."""


@dataclass(frozen=True)
class Piece:
    """Some items that are predicted at once."""

    observed: Tensor
    logits: Callable[[nn.Module, Carry], tuple[Tensor, Carry]]
    """Model and the state after the piece before → [items, classes] and the state after this one."""


class Items(Protocol):
    unit: str
    classes: int
    available: int
    """How many items the whole split has."""
    pieces: list[Piece]
    carries: bool

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[dict[str, Any]]:
        """The items, or groups of them, of the largest score, described."""


class TextItems:
    """Tokens of a text: of each of its streams, side by side, the first ones, `limit` in all or a few more."""

    unit = "token"

    def __init__(self, task: LanguageModelTask, split: str, limit: int) -> None:
        self.vocabulary, self.classes, self.carries = task.vocabulary, len(task.vocabulary), task.carries
        batches = task.evaluated[split]
        self.streams, self.tail = batches.streams, batches.tail
        rows, longest = self.streams.shape[0], self.streams.shape[1] - 1
        self.available = rows * longest + len(self.tail)
        columns = min(longest, -(-limit // rows))
        width = max(1, min(batches.window, PIECE // (rows * self.classes))) if self.carries else batches.window
        self.pieces, self.rows, self.columns = list[Piece](), list[Tensor](), list[Tensor]()
        for start in range(0, columns, width):
            self._read(self.streams[:, start : min(start + width, columns) + 1], 0, start)
        if columns == longest and limit > rows * longest and len(self.tail):
            self._read(batches.rest, rows - 1, longest)

    def _read(self, text: Tensor, row: int, column: int) -> None:
        """One more piece, where its targets stand: in which stream, and after how many tokens of it."""
        text, height, width = text.long(), text.shape[0], text.shape[1] - 1
        self.pieces.append(Piece(text[:, 1:].flatten(), partial(read_on, text[:, :-1], self.carries)))
        self.rows.append((row + torch.arange(height)).repeat_interleave(width))
        self.columns.append((column + 1 + torch.arange(width)).repeat(height))

    def token(self, number: int) -> str:
        return self.vocabulary.token_text(number)

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[dict[str, Any]]:
        """Tokens in their context: what the model expected there, and the tokens around with their own score."""
        rows, columns = torch.cat(self.rows), torch.cat(self.columns)
        scores = torch.full((self.streams.shape[0], self.streams.shape[1] + len(self.tail)), torch.nan)
        scores[rows, columns] = score.float()
        last = torch.cat([self.streams[-1], self.tail])
        reach = 8 if self.vocabulary.level == "word" else 30
        described = []
        for item in score.argsort(descending=True, stable=True)[:top].tolist():
            row, column = int(rows[item]), int(columns[item])
            text = last if row == len(self.streams) - 1 else self.streams[row]
            around = range(max(0, column - reach), min(len(text), column + reach // 2 + 1))
            pieces = self.vocabulary.pieces(text[around.start : around.stop])
            context = list(zip(pieces, scores[row, around.start : around.stop].tolist(), strict=True))
            described.append({
                "stream": row, "place": column, "token": self.token(int(text[column])),
                "expected": self.token(int(made.summary.label[item])), "context": context,
                "at": around.index(column), **numbers_of(made, score, item),
            })
        return described


def read_on(inputs: Tensor, carries: bool, model: nn.Module, carry: Carry) -> tuple[Tensor, Carry]:
    """Logits of the tokens after each input, stream after stream; a text of fewer streams continues the last ones."""
    device, height = next(model.parameters()).device, len(inputs)
    if carry is not None and carry[0][0].shape[1] != height:
        carry = [tuple(part[:, -height:].contiguous() for part in state) for state in carry]
    logits, after = model(inputs.to(device), carry)
    return logits.flatten(0, 1), after if carries else None


class CaptionItems:
    """Words of captions, the end of each included: of every k-th caption, so that they are `limit` or a few more."""

    unit, carries = "word", False

    def __init__(self, task: CaptionTask, split: str, limit: int) -> None:
        captions = task.evaluated[split]
        self.vocabulary, self.classes, self.available = task.vocabulary, len(task.vocabulary), captions.words
        every = max(1, captions.words // limit)
        chosen = torch.arange(0, len(captions), every)
        chosen = chosen[captions.lengths[chosen].argsort(stable=True)]
        self.names, self.pieces, self.captions = task.features.names, list[Piece](), list[tuple[int, int]]()
        for rows in torch.split(chosen, SCORED_AT_ONCE):
            batch = captions.take(rows)
            features = task.features.take(batch.images)
            self.pieces.append(Piece(batch.targets[batch.real], partial(look_and_read, features, batch)))
            self.captions += zip(batch.images.tolist(), captions.lengths[rows].tolist(), strict=True)

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[dict[str, Any]]:
        """Captions of the largest mean score of their words. `log_prob` and its spread are of the whole caption."""
        lengths = torch.tensor([length for _, length in self.captions])
        whose, ends = torch.arange(len(lengths)).repeat_interleave(lengths), lengths.cumsum(0)
        means = torch.zeros(len(lengths), dtype=torch.double).index_add_(0, whose, score.double()) / lengths
        described = []
        for number in means.argsort(descending=True, stable=True)[:top].tolist():
            at = slice(int(ends[number] - lengths[number]), int(ends[number]))
            words = [self.vocabulary.tokens[token] for token in made.observed[at].tolist()]
            whole = made.each[:, at].double().sum(1)
            given = made.summary
            described.append({
                "image": self.names[self.captions[number][0]], "caption": " ".join(words[:-1]),
                "context": list(zip(words, score[at].tolist(), strict=True)), "score": float(means[number]),
                "log_prob": float(made.averaged.log_probability[at].sum()),
                "log_prob_std": float(whole.std(correction=1 if len(whole) > 1 else 0)),
                **{name: float(getattr(given, name)[at].mean()) for name in ("total", "aleatoric", "epistemic")},
            })
        return described


def look_and_read(features: Tensor, batch: CaptionBatch, model: nn.Module, carry: Carry) -> tuple[Tensor, Carry]:
    """Logits of the real words of a batch of captions."""
    assert isinstance(model, Captioner)
    device = next(model.parameters()).device
    hidden = model.hidden(features.to(device), batch.inputs.to(device))
    return model.output(hidden[batch.real.to(device)]), None


class SentenceItems:
    """All sentences of a split."""

    unit, carries = "sentence", False

    def __init__(self, task: ClassifyTask, split: str) -> None:
        self.texts, self.names, self.classes = task.texts[split], task.label_names, len(task.labels)
        self.available = len(self.texts)
        self.pieces = [Piece(task.targets[split], lambda model, carry: (task.log_probs(model, split), None))]

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[dict[str, Any]]:
        """Sentences with their class and the one the averaged model gives."""
        return [
            {"text": self.texts[item], "true": self.names[int(made.observed[item])],
             "predicted": self.names[int(made.summary.label[item])],
             "predicted_std": float(made.summary.label_std[item]), **numbers_of(made, score, item)}
            for item in score.argsort(descending=True, stable=True)[:top].tolist()
        ]


def numbers_of(made: Predictions, score: Tensor, item: int) -> dict[str, float]:
    """Of one item: p of what was observed, its spread, and the parts of the uncertainty."""
    names = ("confidence", "total", "aleatoric", "epistemic", "disagreement")
    seen = {"probability": float(made.probability[item]), "std": float(made.std[item])}
    summary = {name: float(getattr(made.summary, name)[item]) for name in names}
    return {"score": float(score[item])} | seen | summary


def items_of(task: Task, split: str, limit: int) -> Items:
    """The items of a split; `limit` is for tokens and words, which can be very many."""
    if isinstance(task, LanguageModelTask):
        return TextItems(task, split, limit)
    if isinstance(task, CaptionTask):
        return CaptionItems(task, split, limit)
    assert isinstance(task, ClassifyTask)
    return SentenceItems(task, split)
