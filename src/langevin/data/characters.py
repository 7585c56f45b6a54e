"""Words → numbers of hashed character n-grams, so that a word never seen has a beginning.

The n-grams of three to five signs of `<word>`, in lower case. Each has one of BUCKETS numbers, by
its CRC-32: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import torch
from torch import Tensor

BUCKETS = 8192
LEAST, LONGEST = 3, 5
MOST = 28
"""N-grams of a word that are kept, short ones first: words of ten letters have so many."""
NONE = 0
"""Fills the places of a word that has fewer."""


@lru_cache(1 << 16)
def grams_of(word: str) -> tuple[int, ...]:
    """The numbers from 1 to BUCKETS of a word's n-grams, filled up to MOST."""
    spelled = f"<{word.lower()}>"
    grams = [spelled[start : start + size] for size in range(LEAST, LONGEST + 1)
             for start in range(len(spelled) - size + 1)][:MOST]  # fmt: skip
    numbers = [1 + crc32(gram.encode("utf-8", "replace")) % BUCKETS for gram in grams]
    return (*numbers, *[NONE] * (MOST - len(numbers)))


def beside_grams(numbers: Tensor, words: Sequence[str]) -> Tensor:
    """[words, 1 + MOST]: the number of each word, and those of its n-grams."""
    rows = torch.tensor([grams_of(word) for word in words], dtype=torch.int32)
    return torch.cat([numbers.to(torch.int32)[:, None], rows.view(len(words), MOST)], 1)
