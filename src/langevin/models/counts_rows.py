"""Rows of n-grams as the compiled loops of counts see them: how they are found, added, copied.

An n-gram is a row of eight numbers: the row of the n-gram without its last token (PARENT), that
token, how often it was counted there, and what followed it: how many tokens in all, how many types
once, twice and more often. So a row is a type that follows its parent and a context for what comes
after it, and (parent, token) names it exactly. Row 0 is the empty n-gram. Slots with open
addressing find rows: each holds half of a hash and the number of a row plus one.

A table may lie over another that is only read. Then rows of the lower one are copied up when they
change, and are named by the complement of their number (below zero) until they are. ID is the name
that the children of a row have for their parent, whichever table both lie in.

A kernel is a function of a list of 64-bit words (see `samplers/cpu/table.py`): addresses of arrays,
each with its length, and numbers. That spares the counting of references, which took three quarters
of the time when the arrays were passed as such.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from ..samplers.cpu import threads
from ..samplers.cpu.table import OPTIONS, Kernel, carray, pointer, word

PARENT, TOKEN, COUNT, TOTAL, ONES, TWOS, MORE, ID = range(8)
HEAD, NEXT = range(2)
NOTHING = 2**32 - 1
"""Parent and token of the empty n-gram; the end of a list."""
u64 = np.uint64
FIRST, SECOND = u64(0x9E3779B97F4A7C15), u64(0xD6E8FEB86659FD93)
HALF, LOW = u64(32), u64(2**32 - 1)
inlined: Any = numba.njit(forceinline=True, **OPTIONS)


class NgramTable(NamedTuple):
    """Arrays of n-grams: `slots` of uint64, `nodes` of uint32 [rows, 8], `size` how many rows
    there are; `links` of uint32 [rows, 2] chain the types of a context that changed, in a table
    over another (else none)."""

    slots: np.ndarray
    nodes: np.ndarray
    size: np.ndarray
    links: np.ndarray


def run(kernel: Kernel, *values: np.ndarray | int) -> int:
    """Call a kernel with arrays in C order and numbers, from word 2 on; returns its answer."""
    answer, words = np.zeros(1, np.int64), list[int]()
    for value in (answer, *values):
        if isinstance(value, np.ndarray):
            words += [value.ctypes.data, len(value)]
        else:
            words.append(int(value))
    table = np.array(words, np.int64)
    threads.run_kernel(kernel.address("float64"), table.ctypes.data, parallel=False)
    return int(answer[0])


@inlined
def array(data, at, dtype):
    """A vector whose address and length stand there."""
    return carray(pointer(data, at, dtype), (word(data, at + 1),))


@inlined
def matrix(data, at, width, dtype):
    return carray(pointer(data, at, dtype), (word(data, at + 1), width))


@inlined
def table_at(data, at):
    """The table whose four arrays stand there."""
    return NgramTable(
        array(data, at, np.uint64),
        matrix(data, at + 2, 8, np.uint32),
        array(data, at + 4, np.int64),
        matrix(data, at + 6, 2, np.uint32),
    )


@inlined
def answer(data, number):
    array(data, 0, np.int64)[0] = number


@inlined
def scramble(parent, token):
    x = ((u64(parent) << HALF) | u64(token)) * FIRST
    return (x ^ (x >> HALF)) * SECOND


@inlined
def home(slots, x):
    """Where the search for a hash begins."""
    return np.int64(((x >> HALF) * u64(slots.size)) >> HALF)


@inlined
def find(table, parent, token):
    """The row of an n-gram, or −1."""
    slots, nodes = table.slots, table.nodes
    x = scramble(parent, token)
    slot, mark = home(slots, x), x & LOW
    while True:
        word = slots[slot]
        if word == u64(0):
            return -1
        if word >> HALF == mark:
            row = np.int64(word & LOW) - 1
            if nodes[row, PARENT] == parent and nodes[row, TOKEN] == token:
                return row
        slot += 1
        if slot == slots.size:
            slot = 0


@inlined
def copy_row(source, row, target, place):
    for column in range(8):
        target[place, column] = source[row, column]


@inlined
def enter(slots, nodes, row):
    """Put a row that is not there into the slots."""
    x = scramble(nodes[row, PARENT], nodes[row, TOKEN])
    slot = home(slots, x)
    while slots[slot] != u64(0):
        slot += 1
        if slot == slots.size:
            slot = 0
    slots[slot] = ((x & LOW) << HALF) | u64(row + 1)


@inlined
def append(top, below, parent, token):
    """A new n-gram, never counted yet."""
    row = top.size[0]
    top.size[0] = row + 1
    for column in range(8):
        top.nodes[row, column] = 0
    top.nodes[row, PARENT] = parent
    top.nodes[row, TOKEN] = token
    top.nodes[row, ID] = below.size[0] + row
    enter(top.slots, top.nodes, row)
    return row


@inlined
def risen(top, below, place):
    """Where an n-gram is now that may have been copied up."""
    if place >= 0:
        return place
    row = find(top, below.nodes[~place, PARENT], below.nodes[~place, TOKEN])
    return row if row >= 0 else place


@inlined
def lift(top, below, place):
    """The row of an n-gram in the upper table; it is copied up where it was not."""
    place = risen(top, below, place)
    if place >= 0:
        return place
    row = top.size[0]
    top.size[0] = row + 1
    copy_row(below.nodes, ~place, top.nodes, row)
    enter(top.slots, top.nodes, row)
    return row


@inlined
def node_cell(top, below, place, column):
    return np.int64(top.nodes[place, column] if place >= 0 else below.nodes[~place, column])


@inlined
def has_room(table, order):
    """Whether whatever one token brings fits in: its n-grams and copies of their contexts."""
    size = table.size[0] + 2 * order
    return size <= table.nodes.shape[0] and 3 * size <= 2 * table.slots.size
