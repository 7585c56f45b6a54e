"""Kneser-Ney in plain dictionaries: slow, and as the definition has it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

Context = tuple[int, ...]


class Reference:
    """Interpolated modified Kneser-Ney: what a token has of its context, then the shorter one."""

    def __init__(self, vocabulary: int, order: int, start: Sequence[int] = ()) -> None:
        self.vocabulary, self.order, self.start = vocabulary, order, tuple(start)
        self.types: dict[Context, Counter[int]] = defaultdict(Counter)

    def contexts(self, history: Context) -> list[Context]:
        """From the empty one up."""
        most = min(self.order - 1, len(history))
        return [history[len(history) - k :] for k in range(most + 1)]

    def discounts(self) -> list[list[float]]:
        """For each length of context, those of types seen once, twice, more often."""
        kinds = [Counter[int]() for _ in range(self.order)]
        for context, types in self.types.items():
            kinds[len(context)].update(types.values())
        return [[discount(n, j) for j in (1, 2, 3)] for n in kinds]

    def probability(self, history: Context, token: int, discounts: list[list[float]]) -> float:
        p = 1 / self.vocabulary
        for context in self.contexts(history):
            types = self.types.get(context)
            if types:
                d = discounts[len(context)]
                count = types.get(token, 0)
                rest = sum(d[min(n, 3) - 1] for n in types.values())
                own = count - d[min(count, 3) - 1] if count else 0.0
                p = (own + rest * p) / types.total()
        return p

    def count(self, history: Context, token: int) -> None:
        for context in reversed(self.contexts(history)):
            self.types[context][token] += 1
            if self.types[context][token] > 1:
                return

    def add(self, tokens: Sequence[int]) -> None:
        text = (*self.start, *tokens)
        for i in range(len(self.start), len(text)):
            self.count(text[:i], text[i])

    def log_probs(self, tokens: Sequence[int], *, adapt: bool = False) -> list[float]:
        """With `adapt` it goes on counting, and stays so."""
        text, found = (*self.start, *tokens), []
        discounts = self.discounts()
        for i in range(len(self.start), len(text)):
            found.append(math.log(self.probability(text[:i], text[i], discounts)))
            if adapt:
                self.count(text[:i], text[i])
                discounts = self.discounts()
        return found

    def all_probs(self, history: Sequence[int]) -> list[float]:
        discounts, text = self.discounts(), (*self.start, *history)
        return [self.probability(text, token, discounts) for token in range(self.vocabulary)]


def discount(n: Counter[int], j: int) -> float:
    """Of types seen j times, from how many types were seen how often; half of j if none were."""
    guess = j / 2
    if n[1] + n[2] and n[j]:
        guess = j - (j + 1) * n[1] / (n[1] + 2 * n[2]) * n[j + 1] / n[j]
    return min(max(guess, 0.05), j - 0.05)
