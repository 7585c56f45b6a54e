"""N-gram counts that foresee tokens: interpolated modified Kneser-Ney.

Close to the posterior predictive of a hierarchical Pitman-Yor process (Teh 2006), hence nearly
Bayesian by itself, without sampling. The discounts follow Chen and Goodman (1999). Learning and
reading are one compiled loop (`counts_kernel.py`). Counts contain the text they were learnt from.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..errors import LangevinError
from .counts_reader import CountsReader, check_tokens

if TYPE_CHECKING:
    from .counts_table import CountedNgrams, Place

MEMORY = 256 * 2**20
LONGEST = 20
"""The highest order."""
FACTS = ("vocabulary", "order", "asked_order", "memory")

log = logging.getLogger(__name__)


class Counts:
    """How often each n-gram was seen, of up to `order` tokens: what comes next, and how likely.

    `start` are the tokens that stand before the first one of every text; they are read but not
    counted. Where `memory` (bytes) would not do, `order` is less than `asked_order`.
    """

    def __init__(
        self, vocabulary: int, order: int, *, start: Sequence[int] = (), memory: int = MEMORY
    ) -> None:
        if not 1 <= order <= LONGEST:
            raise LangevinError(f"order must be from 1 to {LONGEST} tokens, got {order}")
        if not 1 <= vocabulary < 2**31:
            raise LangevinError(f"a vocabulary needs at least 1 token, got {vocabulary}")
        self.vocabulary, self.asked_order, self.memory = vocabulary, order, memory
        self.start = check_tokens(torch.tensor([list(start)], dtype=torch.long), 1, vocabulary)
        self.ngrams = reserve(order, memory)

    @classmethod
    def learn(
        cls, tokens: Tensor, vocabulary: int, order: int, *, start: Sequence[int] = (),
        memory: int = MEMORY,
    ) -> Counts:  # fmt: skip
        """Counts of one text, a vector of tokens below `vocabulary`."""
        counts = cls(vocabulary, order, start=start, memory=memory)
        counts.add(tokens)
        return counts

    @property
    def order(self) -> int:
        return self.ngrams.order

    @property
    def bytes(self) -> int:
        """Memory in use."""
        return self.ngrams.bytes

    def add(self, tokens: Tensor) -> None:
        """Count another text, too."""
        from .counts_table import Place

        text = torch.cat([self.start, check_tokens(tokens[None], 1, self.vocabulary)], 1)
        place, done = Place(1, self.order), 0
        while done < text.shape[1]:
            _, more = self.ngrams.read(
                place, text[:, done:].contiguous(), self.vocabulary, scores=False, counts=True,
                start=max(0, self.start.shape[1] - done),
            )  # fmt: skip
            done += more
            if done < text.shape[1] and not self.ngrams.grow():
                self.shorten(place)
                place = Place(1, self.order)
                behind = text[:, max(0, done - self.order + 1) : done].contiguous()
                self.ngrams.read(place, behind, self.vocabulary, scores=False)
        self.ngrams.settle()

    def shorten(self, place: Place) -> None:
        """Memory is full: n-grams of one token less."""
        if self.order == 1:
            raise LangevinError(
                f"expected memory for the counts of single tokens, got {self.memory} bytes; "
                f"allow more, {MEMORY} as a rule"
            )
        longest = self.order - 1
        at_end = place.lengths[0] == longest
        self.ngrams.shorten(place.contexts[0, longest] if at_end else 0)
        log.info("order %d instead of %d: %d MB were full", self.order, self.asked_order,
                 self.memory >> 20)

    def log_probs(self, tokens: Tensor, *, adapt: bool = False) -> Tensor:
        """log p of each token of a text given those before it; with `adapt` they count at once,
        for this text alone."""
        return self.reader(adapt=adapt).read(tokens[None])[0, 0]

    def reader(self, *, adapt: bool = False) -> CountsReader:
        return CountsReader(
            self.ngrams, self.vocabulary, self.start, self.memory, adapt=adapt
        )

    def blank(self) -> Counts:
        """Counts of the same kind that have seen nothing."""
        return Counts(self.vocabulary, self.order, start=self.start[0].tolist(), memory=self.memory)

    def to_tensors(self) -> dict[str, Tensor]:
        """All there is to keep, for a safetensors file; it contains the text."""
        from .counts_storage import ngram_tensors

        facts = (self.vocabulary, self.order, self.asked_order, self.memory)
        return ngram_tensors(self.ngrams) | {"facts": torch.tensor(facts), "start": self.start[0]}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], vocabulary: int) -> Counts:
        """What `to_tensors` gave, for a vocabulary of this size."""
        from .counts_storage import checked, damaged, fill_rows

        stored = checked(tensors, ("facts", "start"))
        if len(facts := stored.pop("facts").tolist()) != len(FACTS):
            raise damaged(f"{len(facts)} facts instead of {', '.join(FACTS)}")
        size, order, asked_order, memory = facts
        if size != vocabulary:
            raise LangevinError(f"expected counts over the {vocabulary} tokens of the vocabulary, "
                                f"got counts over {size}; learn them with this vocabulary")
        if not 1 <= order <= asked_order <= LONGEST or not 0 < memory < 2**48:
            raise damaged(f"order {order} of {asked_order} and {memory} bytes")
        counts = cls(size, order, start=stored.pop("start").tolist(), memory=memory)
        counts.asked_order = asked_order
        fill_rows(counts.ngrams, stored, vocabulary)
        return counts


def reserve(order: int, memory: int) -> CountedNgrams:
    from .counts_table import CountedNgrams

    return CountedNgrams(order, memory)


@dataclass(frozen=True)
class OrderChoice:
    """Counts of the training text at the order that foresees validation best."""

    counts: Counts
    nll: dict[int, float]
    """Of validation, in nats a token, by order; those that memory did not allow are missing."""


def choose_order(
    train: Sequence[Tensor], valid: Sequence[Tensor], vocabulary: int, orders: Iterable[int], *,
    start: Sequence[int] = (), memory: int = MEMORY,
) -> OrderChoice:  # fmt: skip
    """Try orders from the lowest up, until validation is foreseen worse or memory does not do."""
    wanted, tokens = sorted(set(orders)), sum(map(len, valid))
    if not wanted or not tokens:
        raise LangevinError(f"expected orders to try and tokens to try them on, got {wanted} and "
                            f"{tokens} tokens; pass at least one of each")
    best: Counts | None = None
    nll: dict[int, float] = {}
    for order in wanted:
        counts = Counts(vocabulary, order, start=start, memory=memory)
        for text in train:
            counts.add(text)
        if best is not None and counts.order <= max(nll):
            break
        found = -sum(float(counts.log_probs(text).sum()) for text in valid) / tokens
        nll[counts.order] = found
        if best is not None and found >= nll[best.order]:
            break
        best = counts
        if counts.order < order:
            break
    assert best is not None
    return OrderChoice(best, nll)
