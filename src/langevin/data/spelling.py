"""Sentences → words → numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ..errors import LangevinError
from .vocabulary import UNKNOWN, Vocabulary

WORDS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""A run of letters and digits with apostrophes inside ("don't", "2nd"), or a single other sign."""

OTHER_SIGNS = re.compile(r"[^\w(),!?'`]+")
CONTRACTIONS = re.compile(r"('s|'ve|n't|'re|'d|'ll)")
KEPT_SIGNS = re.compile(r"([,!?()])")

PADDING = 0
"""Fills short rows of a batch. It is a word's number like any other: what stands after a row's length is never read."""


def words_of(text: str, how: str) -> list[str]:
    """`space`: what white space separates. `words`: words and single signs. `cleaned`: as the benchmarks are prepared.

    `cleaned` follows Kim (2014), whose preparation the five sets have had since: of the signs only (),!?'` stay, the
    endings 's n't 've 're 'd 'll become words, and case stays. (He keeps ASCII letters alone; here any letter stays.)
    """
    if how == "words":
        return WORDS.findall(text)
    if how == "cleaned":
        text = KEPT_SIGNS.sub(r" \1 ", CONTRACTIONS.sub(r" \1", OTHER_SIGNS.sub(" ", text)))
    return text.split()


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
