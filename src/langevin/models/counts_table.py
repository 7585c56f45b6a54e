"""The table of n-grams that `counts.py` learns and reads: its memory, and what it holds."""

from __future__ import annotations

import mmap

import numpy as np
import torch
from torch import Tensor

from .counts_kernel import estimate_all, read_tokens
from .counts_rebuild import drop_longest, fill_slots, measure_all, recount
from .counts_rows import NOTHING, PARENT, TOKEN, NgramTable, run
from .counts_successors import Successors, foresee, index_successors

ROW, LINK = 32, 8
"""Bytes of an n-gram, and of its links in a table over another."""
FEWEST = 2**10
"""Slots at first."""


def blank(rows: int, width: int, dtype: str) -> np.ndarray:
    """Zeros that take no memory before they are written: only what was used counts."""
    size = max(1, rows * width * np.dtype(dtype).itemsize)
    pages = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # Linux; a search that misses the cache takes half as long
        pages.madvise(mmap.MADV_HUGEPAGE)
    numbers = np.frombuffer(pages, dtype, count=rows * width)
    return numbers.reshape(rows, width) if width > 1 else numbers


def empty(rows: int, width: int) -> np.ndarray:
    return np.zeros((rows, width), np.uint32)


NO_TABLE = NgramTable(np.zeros(1, np.uint64), empty(1, 8), np.zeros(1, np.int64), empty(0, 2))
"""What lies under a table that lies over nothing."""


class Place:
    """Where rows of readers stand: the n-grams that end there, [rows, order], and how many."""

    def __init__(self, rows: int, order: int) -> None:
        self.contexts = np.zeros((rows, order), np.int64)
        self.lengths = np.zeros(rows, np.int64)


class CountedNgrams:
    """Counted n-grams of up to `order` tokens within `memory` bytes, by themselves or over others.

    `edition` tells readers that what they stand on has changed.
    """

    def __init__(self, order: int, memory: int, below: CountedNgrams | None = None) -> None:
        self.order, self.below, self.edition = order, below, 0
        self.successors: Successors | None = None
        self.capacity = memory // bytes_of_row(below is not None)
        self.nodes = blank(self.capacity, 8, "uint32")
        self.links = empty(0, 2) if below is None else blank(self.capacity, 2, "uint32")
        self.size = np.ones(1, np.int64)
        self.kinds, self.discounts = np.zeros((order, 4), np.int64), np.zeros((order, 3))
        self.nodes[0, [PARENT, TOKEN]] = NOTHING
        if below is not None:
            self.nodes[0] = below.nodes[0]
            self.kinds, self.discounts = below.kinds.copy(), below.discounts.copy()
        self.fill(FEWEST)

    @property
    def table(self) -> NgramTable:
        return NgramTable(self.slots, self.nodes, self.size, self.links)

    @property
    def lower(self) -> NgramTable:
        return NO_TABLE if self.below is None else self.below.table

    @property
    def bytes(self) -> int:
        """Memory in use."""
        row = ROW if self.below is None else ROW + LINK
        listed = sum(part.nbytes for part in self.successors or ())
        return int(self.size[0]) * row + self.slots.nbytes + listed

    def fill(self, slots: int) -> None:
        """New slots, so many at least; the old ones go first."""
        self.slots = np.zeros(1, np.uint64)
        self.slots = blank(max(slots, 1 + int(self.size[0]) * 3 // 2), 1, "uint64")
        run(fill_slots, *self.table)

    def grow(self) -> bool:
        """Make room for more; False if memory is used up."""
        most = self.capacity * 3 // 2
        if int(self.size[0]) + 2 * self.order > self.capacity or len(self.slots) >= most:
            return False
        self.fill(min(2 * len(self.slots), most))
        return True

    def settle(self) -> None:
        """Something was counted: discounts follow, and what readers know is of yesterday."""
        run(estimate_all, self.kinds, self.discounts)
        self.edition, self.successors = self.edition + 1, None

    def foresee(self, place: Place, vocabulary: int) -> Tensor:
        """log p of all tokens that may come next, [rows, V]."""
        shared = self.below or self
        if shared.successors is None:
            shared.successors = index_successors(shared.table)
        out = torch.empty(len(place.lengths), vocabulary, dtype=torch.float64)
        run(
            foresee, *self.table, *self.lower, *shared.successors, self.discounts, place.lengths,
            place.contexts.ravel(), out.numpy().ravel(), self.order, vocabulary,
        )  # fmt: skip
        return out.log_()

    def read(
        self, place: Place, tokens: Tensor, vocabulary: int, *,
        scores: bool = True, counts: bool = False, start: int = 0,
    ) -> tuple[Tensor, int]:  # fmt: skip
        """Read tokens [rows, n] on: log p of each (if wanted), and how many were read.

        Where it counts, the first `start` tokens only stand before the text, and it stops when
        the table is full.
        """
        out = torch.empty(tokens.shape if scores else (0, 0), dtype=torch.float64)
        done = run(
            read_tokens, *self.table, *self.lower, self.kinds, self.discounts, place.lengths,
            place.contexts.ravel(), tokens.numpy().ravel(), out.numpy().ravel(), self.order,
            vocabulary, start, counts,
        )  # fmt: skip
        return out, done

    def shorten(self, last: int) -> None:
        """Go on with n-grams of one token less; `last` is the row of the longest at the end."""
        lengths, numbers = self.measure(), np.zeros(self.size[0], np.uint32)
        self.size[0] = run(drop_longest, self.nodes, lengths, numbers, self.order, last)
        self.order -= 1
        self.kinds, self.discounts = self.kinds[:-1].copy(), self.discounts[:-1].copy()
        self.refresh()

    def refresh(self) -> None:
        """All that follows from parents, tokens and counts."""
        run(recount, self.nodes, self.measure(), self.kinds)
        self.fill(len(self.slots))
        self.settle()

    def measure(self) -> np.ndarray:
        """How many tokens each n-gram has."""
        lengths = np.zeros(self.size[0], np.uint8)
        run(measure_all, self.nodes, lengths)
        return lengths


def bytes_of_row(linked: bool) -> int:
    """Of an n-gram with its slots, which are at most two thirds full."""
    return ROW + (LINK if linked else 0) + 12
