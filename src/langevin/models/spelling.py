"""How words that a vocabulary does not have are written: counts over their bytes.

p(word) = p(<unk>)·Π_i p(byte_i | bytes before it)·p(end), which makes the probability of a text of
words comparable with that of its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .counts import Counts, choose_order

END, SYMBOLS = 256, 257
"""The end of a word, which stands before each as well; all bytes, and that end."""
FEWEST = 200
"""Words to learn from."""
ORDERS = (2, 3, 4, 5, 6, 7)


class Spelling:
    """Probabilities of words by their bytes; they sum to one over all words."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts

    @classmethod
    def learn(cls, words: Sequence[str]) -> Spelling | None:
        """From the distinct words that were unknown in training; None where they are too few."""
        if len(words) < FEWEST:
            return None
        held_out, rest = words[::10], [word for at, word in enumerate(words) if at % 10]
        found = choose_order([spell_out(rest)], [spell_out(held_out)], SYMBOLS, ORDERS, start=[END])
        counts = found.counts
        counts.add(spell_out(held_out))
        return cls(counts)

    def log_p(self, words: Sequence[str]) -> float:
        """Of all these words together."""
        known, total, reader = dict[str, float](), 0.0, self.counts.reader()
        for word in words:
            if word not in known:
                reader.begin(1)
                known[word] = float(reader.read(spell_out([word])[None]).sum())
            total += known[word]
        return total


def spell_out(words: Sequence[str]) -> Tensor:
    """The bytes of the words, each with its end."""
    return torch.tensor([code for word in words for code in (*word.encode(), END)])
