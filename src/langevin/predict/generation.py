"""From probabilities to a text: which token is drawn, and how tokens become letters."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..data.vocabulary import END, Vocabulary
from ..errors import LangevinError


@dataclass(frozen=True)
class Drawing:
    """How tokens are drawn."""

    seed: int = 0
    softmax_temperature: float = 0.8
    """p^(1/t), normalised; 0 takes the most probable token each time."""
    top_k: int | None = None
    """Keeps the k most probable tokens."""
    top_p: float | None = None
    """Keeps the fewest tokens that hold at least this probability."""

    def __post_init__(self) -> None:
        if not 0 <= self.softmax_temperature < float("inf"):
            raise LangevinError(f"softmax_temperature must be zero or positive, got "
                                f"{self.softmax_temperature}")
        few = self.top_k is not None and self.top_k < 1
        if few or (self.top_p is not None and not 0 < self.top_p <= 1):
            raise LangevinError(f"expected top_k of at least 1 and top_p in (0, 1], got "
                                f"{self.top_k} and {self.top_p}")

    def begin(self) -> Callable[[Tensor], int]:
        """From log p of all tokens, [V], to one of them, again and again."""
        generator = torch.Generator().manual_seed(self.seed)

        def draw(log_p: Tensor) -> int:
            if self.softmax_temperature == 0:
                return int(log_p.argmax())
            below = log_p.double() - log_p.max()  # the least temperature leaves 0 of the largest
            p = torch.softmax(below / self.softmax_temperature, -1)
            p = narrow(p, self.top_k, self.top_p)
            return int(torch.multinomial(p, 1, generator=generator))

        return draw


def narrow(p: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """Zero where a token is not among the most probable ones that are wanted; not normalised."""
    ranked, order = p.sort(descending=True, stable=True)
    wanted = torch.ones_like(ranked, dtype=torch.bool)
    if top_k is not None:
        wanted[top_k:] = False
    if top_p is not None:
        wanted &= ranked.cumsum(0) - ranked < top_p  # until what came before holds enough
    return torch.zeros_like(p).index_copy_(0, order, ranked * wanted)


class Letters:
    """The text of tokens in whole letters, as it goes on after `before`.

    A letter waits for its last byte; words stand behind a space, but for the first of a line.
    """

    def __init__(self, vocabulary: Vocabulary, before: str) -> None:
        self.vocabulary = vocabulary
        self.apart = bool(before) and not before[-1].isspace()
        self.decoder = getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """What this token adds to the text; nothing where a letter is not whole yet."""
        if self.vocabulary.level != "word":
            return self.decoder.decode(self.vocabulary.decode([token]))
        word, apart = self.vocabulary.tokens[token], self.apart
        self.apart = word != END
        return "\n" if word == END else f" {word}" if apart else word

    def end(self) -> str:
        """What is left of a letter that stayed incomplete."""
        return self.decoder.decode(b"", final=True)


def letters(vocabulary: Vocabulary, tokens: Iterable[int], before: str) -> Iterator[str]:
    """The text of the tokens in whole letters, piece by piece."""
    made = Letters(vocabulary, before)
    for token in tokens:
        if shown := made.add(token):
            yield shown
    if shown := made.end():
        yield shown
