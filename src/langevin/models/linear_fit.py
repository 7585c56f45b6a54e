"""Labelled items → a linear posterior, and scores out of fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import LangevinError
from .linear import LinearChoice, LinearPosterior
from .linear_record import ClassWeight
from .logistic import Labelled, Search, balanced, find_top, fold_of, path_to, spread
from .sentence_features import Features, Items, check_items, learn_items, read_items, take_items

TEMPERATURE, WIDEST = 0.01, 2.0
"""Of the draws: the highest at which their average is level with the point, up to the prior
variance WIDEST. Beyond, it falls with 1/σ²: an n-gram that the labels say nothing of adds T·σ² to
the variance of a logit, and of few rows most n-grams are such."""
FOLDS, FEWER_FOLDS, MANY = 5, 3, 1000
"""Of cross-validation, and of so many rows or more, where each fit takes its time."""
SHORT = 4000
"""Rows below which words of a single text are judged at the best prior variance, not at the first
alone: there the first can mislead."""


def fit_linear(
    items: Items, labels: Sequence[str], classes: Sequence[str], *,
    valid: tuple[Items, Sequence[str]] | None = None, choice: LinearChoice | None = None,
    class_weight: ClassWeight = None, seed: int = 0, draws: int = 12,
) -> LinearPosterior:  # fmt: skip
    """The posterior given labelled items, each class among them.

    Held-out rows choose: `valid`, or folds of the items. `choice` takes over what was chosen
    before, as for a refit on more rows.
    """
    task = LinearTask(tuple(classes), class_weight, seed, draws)
    rows = task.number(items, labels)
    if absent := sorted(set(range(len(task.classes))) - set(rows.numbers.tolist())):
        more = f" ({len(absent)} classes in all)" if len(absent) > 1 else ""
        raise LangevinError(f"expected rows of every class in training, {task.classes[absent[0]]!r}"
                            f" has none{more}; add some, or leave the class out")
    if choice is None:
        splits = [(rows, task.number(*valid))] if valid is not None else task.folds(rows)
        choice = task.choose(splits)
    return task.fit(rows, choice)


@dataclass(frozen=True)
class NumberedRows:
    """Items, the number of the class of each, and where it stood."""

    items: Items
    numbers: NDArray[np.int64]
    places: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> NumberedRows:
        return NumberedRows(take_items(self.items, places), self.numbers[places], self.places[places])


@dataclass(frozen=True)
class LinearTask:
    """What stays the same while rows and choices change."""

    classes: tuple[str, ...]
    class_weight: ClassWeight
    seed: int
    draws: int

    def number(self, items: Items, labels: Sequence[str]) -> NumberedRows:
        """Rows with classes as numbers; labels that are no class are refused by name."""
        if len(set(self.classes)) < max(2, len(self.classes)):
            raise LangevinError(f"expected two distinct classes or more, got {self.classes}; "
                                f"nothing is to be told apart")
        check_items(items, len(labels))
        place = {name: number for number, name in enumerate(self.classes)}
        if strange := [label for label in labels if label not in place]:
            raise LangevinError(f"expected labels among {len(place)} classes ("
                                f"{', '.join(self.classes[:5])}, …), got {strange[0]!r}; add it "
                                f"to the classes, or leave its rows out")
        numbers = np.array([place[label] for label in labels], np.int64)
        return NumberedRows(items, numbers, np.arange(len(numbers)))

    def folds(self, rows: NumberedRows) -> list[tuple[NumberedRows, NumberedRows]]:
        """(the others, the fold), every class spread evenly."""
        if np.bincount(rows.numbers).max() < 2:
            raise LangevinError("expected two rows of some class at least, for scores out of fold; "
                                "every class has one: add rows, or pass validation rows")
        count = min(FOLDS if len(rows.numbers) < MANY else FEWER_FOLDS, len(rows.numbers))
        fold = fold_of(rows.numbers, count, self.seed)
        return [(rows.take(np.flatnonzero(fold != f)), rows.take(np.flatnonzero(fold == f)))
                for f in range(count)]

    def choose(self, splits: Sequence[tuple[NumberedRows, NumberedRows]]) -> LinearChoice:
        """The choice whose nll on the second halves is least."""
        dense = isinstance(splits[0][0].items, Tensor)
        searches = {}
        for least in (1,) if dense else (1, 2):
            pairs = []
            for rows, held_out in splits:
                reader = learn_items(rows.items, least)
                pairs.append((self.read(reader, rows), self.read(reader, held_out)))
            searches[least] = Search(pairs, len(self.classes))
        thorough = len(splits[0][0].numbers) < SHORT
        if thorough:
            for search in searches.values():
                search.descend()
        least = min(searches, key=lambda least: searches[least].best.nll)
        best = searches[least].best if thorough else searches[least].descend()
        return LinearChoice(best.prior_variance, least, best.nll)

    def read(self, reader: Features, rows: NumberedRows) -> Labelled:
        ones = np.ones(len(rows.numbers), np.float32)
        weights = balanced(rows.numbers, len(self.classes)) if self.class_weight else ones
        return Labelled(read_items(reader, rows.items), rows.numbers, weights)

    def fit(self, rows: NumberedRows, choice: LinearChoice) -> LinearPosterior:
        reader = learn_items(rows.items, choice.least)
        data = self.read(reader, rows)
        top = np.zeros((reader.width, len(self.classes)), np.float32)
        for variance in path_to(choice.prior_variance):
            top = find_top(data, variance, top)
        temperature = TEMPERATURE * min(1.0, WIDEST / choice.prior_variance)
        deviation = spread(data, top, choice.prior_variance, temperature)
        return LinearPosterior(self.classes, reader, torch.from_numpy(top),
                               torch.from_numpy(deviation), choice, self.class_weight,
                               self.seed, self.draws)


def cross_fit(
    items: Items, labels: Sequence[str], classes: Sequence[str], *,
    choice: LinearChoice | None = None, class_weight: ClassWeight = None, seed: int = 0,
    draws: int = 12,
) -> Tensor:  # fmt: skip
    """Log probabilities of each item by a fit without its fold, [draws, items, classes].

    Where nothing is chosen, the same folds choose; that is one or two numbers learnt from all
    rows. A class that a fold alone has is known by its prior there.
    """
    task = LinearTask(tuple(classes), class_weight, seed, draws)
    rows = task.number(items, labels)
    splits = task.folds(rows)
    choice = choice or task.choose(splits)
    scores = torch.zeros(draws, len(labels), len(task.classes))
    for others, fold in splits:
        scores[:, torch.from_numpy(fold.places)] = task.fit(others, choice).log_probs(fold.items)
    return scores
