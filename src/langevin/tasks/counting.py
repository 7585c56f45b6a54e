"""Counts of the text of a language model: learnt from its splits, and read over them in order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..data.corpora import read_corpus
from ..data.text import words_in
from ..models.counts import Counts, OrderChoice, choose_order
from .language_model import LanguageModelTask

ORDERS = {"byte": (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20), "word": (2, 3, 4, 5, 6, 7)}
"""Tried by level, from the lowest up, until validation is foreseen worse; characters as bytes."""

FOLDS = 5
"""Parts of validation that are foreseen one after the other by counts of all the rest."""


def learn_counts(task: LanguageModelTask, order: int, memory: int) -> Counts:
    """Of the training text alone."""
    counts = Counts(len(task.vocabulary), order, start=[task.vocabulary.start], memory=memory)
    count_split(counts, task, "train")
    return counts


def count_split(counts: Counts, task: LanguageModelTask, split: str) -> None:
    for text in task.evaluated[split].texts:
        counts.add(text)


def counted_log_probs(
    counts: Counts, task: LanguageModelTask, split: str, *, adapt: bool = False
) -> Tensor:
    """log p of every observed token of a split, as `log_probs` has them; with `adapt` the counts go
    on counting from its beginning to its end."""
    reader, pieces = counts.reader(adapt=adapt), list[Tensor]()
    for text in task.evaluated[split].texts:
        if not adapt:
            reader.begin(1)
        pieces.append(reader.read(text[None])[0, 0, 1:])
    return torch.cat(pieces)


def reading_on_log_probs(counts: Counts, task: LanguageModelTask, split: str) -> list[Tensor]:
    """log p of every observed token of a split by counts that go on counting, and by counts that
    begin with this split: what it says again and again, the others have read long ago."""
    return [counted_log_probs(each, task, split, adapt=True) for each in (counts, counts.blank())]


def crossed_log_probs(task: LanguageModelTask, order: int, memory: int) -> Tensor:
    """log p of every observed token of validation, fifth by fifth, by counts of the training text
    and of the other fifths.

    What answers in the end has counted validation, too: weights that were fitted to counts of the
    training text alone trust them too little (docs/log.md).
    """
    texts = [torch.tensor_split(text, FOLDS) for text in task.evaluated["valid"].texts]
    found: list[list[Tensor]] = [[] for _ in texts]
    for held_out in range(FOLDS):
        counts = learn_counts(task, order, memory)
        for pieces in texts:
            for number, piece in enumerate(pieces):
                if number != held_out:
                    counts.add(piece)
        for pieces, row in zip(texts, found, strict=True):
            row.append(counts.log_probs(pieces[held_out]))
    return torch.cat([torch.cat(row)[1:] for row in found])


def unknown_words(task: LanguageModelTask) -> list[str]:
    """The distinct words of the training text that became <unk>, in the order in which they
    come."""
    vocabulary, batches = task.vocabulary, task.evaluated["train"]
    if vocabulary.level != "word" or len(batches.texts) > 1:
        return []
    corpus, found, left = read_corpus(task.data.corpus), dict[str, None](), len(batches.texts[0])
    for block in words_in(corpus.get("text") or corpus["train"], vocabulary.line_end):
        found |= dict.fromkeys(w for w in block[:left] if w not in vocabulary.numbers)
        left -= len(block)
        if left <= 0:
            break
    return list(found)


def choose_counts(task: LanguageModelTask, memory: int) -> OrderChoice:
    """Counts of the training text at the order that foresees validation best."""
    orders = ORDERS.get(task.vocabulary.level, ORDERS["byte"])
    return choose_order(
        task.evaluated["train"].texts, task.evaluated["valid"].texts,
        len(task.vocabulary), orders, start=[task.vocabulary.start], memory=memory,
    )  # fmt: skip


def windows_of(nll: Tensor, window: int, shares: Sequence[float]) -> tuple[float, ...]:
    """Quantiles of the mean nll of windows of a text; none where there are fewer than twenty."""
    count = len(nll) // window
    if count < 20:
        return ()
    means = nll[: count * window].double().view(count, window).mean(1)
    return tuple(means.quantile(torch.tensor(shares, dtype=torch.float64)).tolist())
