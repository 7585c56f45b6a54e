"""Sentences → words → numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ..errors import LangevinError
from .vocab import UNKNOWN, Vocabulary

WORDS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""A run of letters and digits with apostrophes inside ("don't", "2nd"), or a single other sign."""

PADDING = 0
"""Fills short rows of a batch. It is a word's number like any other: what stands after a row's length is never read."""

HOW = ("space", "words")


def words_of(text: str, how: str) -> list[str]:
    """`space`: what white space separates, for text that was tokenised; `words`: words and punctuation."""
    return text.split() if how == "space" else WORDS.findall(text)


def build_vocabulary(sentences: Iterable[Sequence[str]], *, min_count: int, max_size: int | None) -> Vocabulary:
    """`<unk>`, then the words by falling frequency, without those rarer than `min_count` or beyond `max_size`."""
    counts = Counter(word for words in sentences for word in words if word != UNKNOWN)
    kept = sorted((w for w in counts if counts[w] >= min_count), key=lambda w: (-counts[w], w))
    return Vocabulary("word", [UNKNOWN, *kept[: None if max_size is None else max_size - 1]])


def encode(words: Sequence[str], vocabulary: Vocabulary) -> Tensor:
    """Numbers of the words; those outside the vocabulary become `<unk>`."""
    unknown = vocabulary.numbers.get(UNKNOWN)
    if unknown is None:
        raise LangevinError(f"expected a vocabulary with {UNKNOWN}, got one of {len(vocabulary)} words without it")
    return torch.tensor([vocabulary.numbers.get(word, unknown) for word in words], dtype=torch.long)


def split_unknown(words: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """For free text and a model of tokenised text: a piece that the model does not know is cut at its punctuation."""
    return [part for word in words for part in ([word] if word in vocabulary.numbers else words_of(word, "words"))]
