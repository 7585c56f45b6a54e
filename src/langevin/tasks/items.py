"""What a run predicts, item by item: tokens of a text, words of captions, sentences.

Each gives its split as slices that a model can predict one after another, and tells of single items
what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from ..data.batching import SuccessiveBatches
from ..data.caption_batches import CaptionBatch, CaptionSet
from ..data.features import ImageFeatures
from ..data.vocabulary import Vocabulary
from ..models.captioner import Captioner
from ..posterior.streaming import Predictions
from .base import Carry, Slice, UncertainItem

SHOWN = 24
"""Letters of a sentence that name it."""
PIECE = 1 << 23
"""Logits in one slice, at most where the slice can be cut: 32 MB."""


class TextItems:
    """Tokens of a text: of all streams side by side, the first ones, `limit` in all or a few
    more."""

    unit = "token"

    def __init__(
        self, vocabulary: Vocabulary, batches: SuccessiveBatches, limit: int, *, carries: bool
    ) -> None:
        self.vocabulary, self.classes, self.carries = vocabulary, len(vocabulary), carries
        self.streams, self.tail = batches.streams, batches.tail
        rows, longest = self.streams.shape[0], self.streams.shape[1] - 1
        self.available = rows * longest + len(self.tail)
        columns = min(longest, -(-limit // rows))
        width = batches.window
        if carries:
            width = max(1, min(width, PIECE // (rows * self.classes)))
        self.slices, self.rows, self.columns = list[Slice](), list[Tensor](), list[Tensor]()
        for start in range(0, columns, width):
            self._read(self.streams[:, start : min(start + width, columns) + 1], 0, start)
        if columns == longest and limit > rows * longest and len(self.tail):
            self._read(batches.rest, rows - 1, longest)
        seen = torch.cat([piece.observed for piece in self.slices])
        self.unknown_share = vocabulary.unknown_share(seen)

    def _read(self, text: Tensor, row: int, column: int) -> None:
        """One more slice, where its targets stand: in which stream, after how many tokens of it."""
        text, height, width = text.long(), text.shape[0], text.shape[1] - 1
        logits = partial(read_on, text[:, :-1], self.carries)
        self.slices.append(Slice(text[:, 1:].flatten(), logits))
        self.rows.append((row + torch.arange(height)).repeat_interleave(width))
        self.columns.append((column + 1 + torch.arange(width)).repeat(height))

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[UncertainItem]:
        """Tokens in their context: what was expected there, and the tokens around with theirs."""
        rows, columns = torch.cat(self.rows), torch.cat(self.columns)
        scores = torch.full((len(self.streams), self.streams.shape[1] + len(self.tail)), torch.nan)
        scores[rows, columns] = score.float()
        last = torch.cat([self.streams[-1], self.tail])
        reach = 8 if self.vocabulary.level == "word" else 30
        described = []
        for item in score.argsort(descending=True, stable=True)[:top].tolist():
            row, column = int(rows[item]), int(columns[item])
            text = last if row == len(self.streams) - 1 else self.streams[row]
            around = range(max(0, column - reach), min(len(text), column + reach // 2 + 1))
            pieces = self.vocabulary.pieces(text[around.start : around.stop])
            shares = scores[row, around.start : around.stop].tolist()
            described.append(replace(
                described_item(made, score, item, self.vocabulary.token_text(int(text[column]))),
                predicted=self.vocabulary.token_text(int(made.summary.label[item])),
                place=(row, column), at=around.index(column),
                context=tuple(zip(pieces, shares, strict=True)),
            ))  # fmt: skip
        return described


def read_on(
    inputs: Tensor, carries: bool, model: nn.Module, carry: Carry
) -> tuple[Tensor, Carry]:
    """Logits of the tokens after each input, stream after stream.

    A text of fewer streams continues the last ones.
    """
    device, height = next(model.parameters()).device, len(inputs)
    if carry is not None and carry[0][0].shape[1] != height:
        carry = [tuple(part[:, -height:].contiguous() for part in state) for state in carry]
    logits, after = model(inputs.to(device), carry)
    return logits.flatten(0, 1), after if carries else None


class CaptionItems:
    """Words of captions, ends included: of every k-th caption, so that they are about `limit`."""

    unit = "word"

    def __init__(
        self, vocabulary: Vocabulary, features: ImageFeatures, captions: CaptionSet, limit: int,
        at_once: int,
    ) -> None:
        self.vocabulary, self.classes = vocabulary, len(vocabulary)
        self.available = captions.words
        every = max(1, captions.words // limit)
        chosen = torch.arange(0, len(captions), every)
        chosen = chosen[captions.lengths[chosen].argsort(stable=True)]
        self.names, self.slices, self.captions = features.names, list[Slice](), list[tuple[int, int]]()
        for rows in torch.split(chosen, at_once):
            batch = captions.take(rows)
            seen = features.take(batch.images)
            self.slices.append(Slice(batch.targets[batch.real], partial(look_and_read, seen, batch)))
            lengths = captions.lengths[rows].tolist()
            self.captions += zip(batch.images.tolist(), lengths, strict=True)
        words = torch.cat([piece.observed for piece in self.slices])
        self.unknown_share = vocabulary.unknown_share(words)

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[UncertainItem]:
        """Captions of the largest mean score of their words."""
        lengths = torch.tensor([length for _, length in self.captions])
        whose, ends = torch.arange(len(lengths)).repeat_interleave(lengths), lengths.cumsum(0)
        sums = torch.zeros(len(lengths), dtype=torch.double).index_add_(0, whose, score.double())
        means, summary = sums / lengths, made.summary
        described = []
        for number in means.argsort(descending=True, stable=True)[:top].tolist():
            at = slice(int(ends[number] - lengths[number]), int(ends[number]))
            words = [self.vocabulary.tokens[token] for token in made.observed[at].tolist()]
            whole = made.each[:, at].double().sum(1)
            described.append(UncertainItem(
                score=float(means[number]), text=" ".join(words[:-1]),
                source=self.names[self.captions[number][0]],
                context=tuple(zip(words, score[at].tolist(), strict=True)),
                log_p=float(made.averaged.log_probability[at].sum()),
                log_p_std=float(whole.std(correction=1 if len(whole) > 1 else 0)),
                entropy=float(summary.total[at].mean()),
                aleatoric=float(summary.aleatoric[at].mean()),
                mutual_information=float(summary.epistemic[at].mean()),
            ))  # fmt: skip
        return described


def look_and_read(
    features: Tensor, batch: CaptionBatch, model: nn.Module, carry: Carry
) -> tuple[Tensor, Carry]:
    """Logits of the real words of a batch of captions."""
    assert isinstance(model, Captioner)
    device = next(model.parameters()).device
    hidden = model.hidden(features.to(device), batch.inputs.to(device))
    return model.output(hidden[batch.real.to(device)]), None


class SentenceItems:
    """All sentences of a split."""

    unit = "sentence"

    def __init__(
        self, texts: Sequence[str], names: Sequence[str], targets: Tensor,
        log_probs: Callable[[nn.Module], Tensor], unknown_share: float | None = None,
    ) -> None:
        self.texts, self.names, self.classes = texts, names, len(names)
        self.available, self.unknown_share = len(texts), unknown_share
        self.slices = [Slice(targets, lambda model, carry: (log_probs(model), None))]

    def most_uncertain(self, made: Predictions, score: Tensor, top: int) -> list[UncertainItem]:
        """Sentences with their class and the one that the average gives."""
        return [replace(
            described_item(made, score, item, self.texts[item]),
            label=self.names[int(made.observed[item])],
            predicted=self.names[int(made.summary.label[item])],
        ) for item in score.argsort(descending=True, stable=True)[:top].tolist()]  # fmt: skip


def name_answer(texts: Sequence[str], names: Sequence[str], place: int) -> str:
    """The sentence and the class of a place among all probabilities, [sentences × classes]."""
    sentence, label = divmod(place, len(names))
    text = texts[sentence]
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return f"{names[label]} for {shown!r}, sentence {sentence + 1:,}"


def described_item(made: Predictions, score: Tensor, item: int, text: str) -> UncertainItem:
    """Its p of what was observed, the spread of that, and the parts of the uncertainty."""
    summary = made.summary
    return UncertainItem(
        score=float(score[item]), text=text, p=float(made.probability[item]),
        std=float(made.std[item]), entropy=float(summary.total[item]),
        aleatoric=float(summary.aleatoric[item]),
        mutual_information=float(summary.epistemic[item]),
        confidence=float(summary.confidence[item]), confidence_std=float(summary.label_std[item]),
        disagreement=float(summary.disagreement[item]),
    )  # fmt: skip
