"""Which labelled sentences are for training, validation and test.

Splits are stratified and the same on every machine: a hash of the item's number decides, never the
run's seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor

from ..errors import LangevinError
from .corpora import SPLITS
from .sentences import Sentences, read_corpus_of_sentences, read_sentences

SPLIT_SEED = 2017
"""Of all splits; part of what "fold 3 of MR" means, so it never changes."""

Part = list[tuple[str, int]]
"""Texts, each with the number of its class."""


class Source(Protocol):
    """What a recipe says about its sentences and their splits."""

    @property
    def corpus(self) -> str: ...
    @property
    def valid_file(self) -> str | None: ...
    @property
    def test_file(self) -> str | None: ...
    @property
    def text_column(self) -> str: ...
    @property
    def label_column(self) -> str: ...
    @property
    def valid_share(self) -> float: ...
    @property
    def test_share(self) -> float: ...
    @property
    def folds(self) -> int: ...
    @property
    def fold(self) -> int | None: ...


def check_split(split: str, splits: Collection[str]) -> None:
    """Refuse the name of a split that a task does not have."""
    if split not in splits:
        raise LangevinError(f"split must be one of {', '.join(splits)}, got {split!r}")


def shuffled_by_hash(labels: Sequence[int], items: Sequence[int], purpose: str) -> list[int]:
    """Items class after class, shuffled within each class by a hash of (seed, purpose, item)."""

    def draw(item: int) -> bytes:
        source = f"{SPLIT_SEED}:{purpose}:{item}".encode()
        return hashlib.blake2b(source, digest_size=8).digest()

    return sorted(items, key=lambda item: (labels[item], draw(item)))


def fold_by_label(labels: Sequence[int], folds: int) -> list[int]:
    """The fold of each item. Sizes differ by at most one, in all and within each class."""
    number = [0] * len(labels)
    for place, item in enumerate(shuffled_by_hash(labels, range(len(labels)), "fold")):
        number[item] = place % folds
    return number


def hold_out(
    labels: Sequence[int], items: Sequence[int], share: float, purpose: str
) -> tuple[list[int], list[int]]:
    """(rest, held out), both in their old order; each class gives its share, to within an item."""
    order = shuffled_by_hash(labels, items, purpose)
    held = {
        item for place, item in enumerate(order) if int((place + 1) * share) > int(place * share)
    }
    return [item for item in items if item not in held], [item for item in items if item in held]


def split_sha256(parts: dict[str, list[int]]) -> str:
    """One hash of who is in which split, to notice when a run is reopened with another split."""
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()


def read_all(data: Source) -> dict[str, Sentences]:
    """The corpus ("all", or "train" and "test") and the files that were given beside it."""
    corpus = read_corpus_of_sentences(data.corpus, data.text_column, data.label_column)
    for name, path in {"test": data.test_file, "valid": data.valid_file}.items():
        if path is not None:
            corpus[name] = read_sentences(Path(path), data.text_column, data.label_column)
    if "test" in corpus and data.fold is not None:
        raise LangevinError(
            f"{data.corpus} has a test split of its own, got fold {data.fold}; leave the fold out"
        )
    return corpus


def refuse_unlearnable(data: Source, corpus: dict[str, Sentences], labels: Sequence[str]) -> None:
    """Refuse what cannot be learnt from."""
    if len(labels) < 2:
        raise LangevinError(
            f"expected at least two classes in {data.corpus}, all sentences have the label "
            f"{labels[0]!r}; check label_column ({data.label_column!r})"
        )
    texts = next(iter(corpus.values())).texts
    if not any(text.strip() for text in texts):
        raise LangevinError(
            f"expected texts in {data.corpus}, all {len(texts)} are empty; "
            f"check text_column ({data.text_column!r})"
        )
    if len(labels) > len(texts) // 2:
        raise LangevinError(
            f"expected labels that repeat in {data.corpus}, got {len(labels)} different ones for "
            f"{len(texts)} sentences; check label_column ({data.label_column!r})"
        )


def split_corpus(
    data: Source, corpus: dict[str, Sentences], labels: Sequence[str]
) -> tuple[dict[str, Part], str]:
    """Texts with the number of their class in each split, and a hash of who is where."""
    pairs = {
        name: list(zip(sentences.texts, numbered(sentences, labels, name), strict=True))
        for name, sentences in corpus.items()
    }
    main = pairs["train" if "train" in pairs else "all"]
    numbers = [label for _, label in main]
    rest, parts = list(range(len(numbers))), dict[str, list[int]]()
    if "test" not in pairs and data.fold is not None:
        folds = fold_by_label(numbers, data.folds)
        parts["test"] = [item for item in rest if folds[item] == data.fold]
        rest = [item for item in rest if folds[item] != data.fold]
    elif "test" not in pairs and data.test_share:
        rest, parts["test"] = hold_out(numbers, rest, data.test_share, "test")
    if "valid" not in pairs:
        rest, parts["valid"] = hold_out(numbers, rest, data.valid_share, "valid")
    parts["train"] = rest
    splits = {name: [main[item] for item in items] for name, items in parts.items()}
    splits |= {name: pairs[name] for name in ("valid", "test") if name in pairs}
    for name, part in splits.items():
        if not part:
            raise LangevinError(
                f"{data.corpus} is too small: no sentence of {len(numbers)} is left for {name}; "
                f"use more sentences or larger shares"
            )
    return {name: splits[name] for name in SPLITS if name in splits}, split_sha256(parts)


def numbered(sentences: Sentences, labels: Sequence[str], where: str) -> list[int]:
    """The class of each sentence; a label that training never had is refused."""
    place = {label: number for number, label in enumerate(labels)}
    strange = sorted(set(sentences.labels) - set(labels))
    if strange:
        shown = ", ".join(repr(label) for label in strange[:5])
        known = ", ".join(repr(label) for label in labels[:20])
        raise LangevinError(
            f"{where} has the labels {shown}, which training never had; expected some of {known}"
        )
    return [place[label] for label in sentences.labels]


def balanced_weights(counts: Tensor) -> Tensor:
    """w_c = N/(K·n_c) of K classes that occur: each counts alike; the mean over items is one."""
    present = counts > 0
    return counts.sum() / (present.sum() * counts.clamp(min=1)) * present
