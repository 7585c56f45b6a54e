"""Which labelled sentences a recipe means, and which of them are for training, validation and test."""

from __future__ import annotations

from pathlib import Path

from ..errors import LangevinError
from ..recipe import SentenceData
from .folds import fold_of, hold_out, split_sha256
from .sentences import Sentences, read_corpus_of_sentences, read_sentences

Part = list[tuple[str, int]]
"""Texts, each with the number of its class."""


def read_all(data: SentenceData) -> dict[str, Sentences]:
    """The corpus ("all", or "train" and "test") and the files that were given beside it."""
    corpus = read_corpus_of_sentences(data.corpus, data.text_column, data.label_column)
    for name, path in {"test": data.test_file, "valid": data.valid_file}.items():
        if path is not None:
            corpus[name] = read_sentences(Path(path), data.text_column, data.label_column)
    if "test" in corpus and data.fold is not None:
        raise LangevinError(f"{data.corpus} has a test split of its own, got fold {data.fold}; leave the fold out")
    return corpus


def check_classes(data: SentenceData, corpus: dict[str, Sentences], labels: tuple[str, ...]) -> None:
    """Refuse what cannot be learnt from."""
    if len(labels) < 2:
        raise LangevinError(f"expected at least two classes in {data.corpus}, all sentences have the label "
                            f"{labels[0]!r}; check label_column ({data.label_column!r})")
    texts = next(iter(corpus.values())).texts
    if not any(text.strip() for text in texts):
        raise LangevinError(f"expected texts in {data.corpus}, all {len(texts)} are empty; "
                            f"check text_column ({data.text_column!r})")
    if len(labels) > len(texts) // 2:
        raise LangevinError(f"expected labels that repeat in {data.corpus}, got {len(labels)} different ones for "
                            f"{len(texts)} sentences; check label_column ({data.label_column!r})")


def split(data: SentenceData, corpus: dict[str, Sentences], labels: tuple[str, ...]) -> tuple[dict[str, Part], str]:
    """Texts with the number of their class in each split, and a hash of who is where."""
    pairs = {name: list(zip(s.texts, numbered(s, labels, name), strict=True)) for name, s in corpus.items()}
    main = "train" if "train" in pairs else "all"
    numbers = [label for _, label in pairs[main]]
    rest, parts = list(range(len(numbers))), dict[str, list[int]]()
    if "test" not in pairs and data.fold is not None:
        folds = fold_of(numbers, data.folds)
        parts["test"] = [item for item in rest if folds[item] == data.fold]
        rest = [item for item in rest if folds[item] != data.fold]
    elif "test" not in pairs and data.test_share:
        rest, parts["test"] = hold_out(numbers, rest, data.test_share, "test")
    if "valid" not in pairs:
        rest, parts["valid"] = hold_out(numbers, rest, data.valid_share, "valid")
    parts["train"] = rest
    made = {name: [pairs[main][item] for item in items] for name, items in parts.items()}
    made |= {name: pairs[name] for name in ("valid", "test") if name in pairs}
    for name, part in made.items():
        if not part:
            raise LangevinError(f"{data.corpus} is too small: no sentence of {len(numbers)} is left for {name}; "
                                f"use more sentences or larger shares")
    return {name: made[name] for name in ("train", "valid", "test") if name in made}, split_sha256(parts)


def numbered(sentences: Sentences, labels: tuple[str, ...], where: str) -> list[int]:
    """The class of each sentence; a label that training never had is refused."""
    place = {label: number for number, label in enumerate(labels)}
    strange = sorted(set(sentences.labels) - set(labels))
    if strange:
        shown = ", ".join(repr(label) for label in strange[:5])
        known = ", ".join(repr(label) for label in labels[:20])
        raise LangevinError(f"{where} has the labels {shown}, which training never had; expected some of {known}")
    return [place[label] for label in sentences.labels]
