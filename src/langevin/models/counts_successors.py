"""All that may come next: an index of what followed each n-gram, and the loop that goes by it.

numba's cache on disk watches this file alone: after a change in counts_rows.py, touch it too.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..samplers.cpu.table import Kernel, word
from .counts_kernel import discount, left_over
from .counts_rows import (
    COUNT,
    HEAD,
    ID,
    NEXT,
    NOTHING,
    PARENT,
    TOKEN,
    TOTAL,
    NgramTable,
    array,
    node_cell,
    find,
    inlined,
    matrix,
    run,
    table_at,
)


class Successors(NamedTuple):
    """The types of the n-gram in row r are tokens[starts[r] : starts[r + 1]] with these counts."""

    starts: np.ndarray
    tokens: np.ndarray
    counts: np.ndarray


def index_successors(table: NgramTable) -> Successors:
    size = int(table.size[0])
    successors = Successors(*(np.zeros(size + more, np.uint32) for more in (1, 0, 0)))
    run(sort_by_parent, table.nodes, *successors)
    return successors


@inlined
def successors_at(data, at):
    return Successors(
        array(data, at, np.uint32), array(data, at + 2, np.uint32), array(data, at + 4, np.uint32)
    )


@Kernel
def sort_by_parent(data):
    """Words: rows, the successors to be filled."""
    nodes = matrix(data, 2, 8, np.uint32)
    starts, tokens, counts = successors_at(data, 4)
    size = len(tokens)
    for row in range(1, size):
        starts[nodes[row, PARENT] + 1] += 1
    for row in range(size):
        starts[row + 1] += starts[row]
    ends = starts[:-1].copy()
    for row in range(1, size):
        place = ends[nodes[row, PARENT]]
        ends[nodes[row, PARENT]] = place + 1
        tokens[place], counts[place] = nodes[row, TOKEN], nodes[row, COUNT]


@inlined
def discounted_share(discounts, k, count):
    """What a type has of its context by itself, in counts; none if it stands there as context."""
    return count - discount(discounts, k, count) if count > 0 else 0.0


@inlined
def add_changes(top, below, context, discounts, k, total, p):
    """Types of a context that were counted since: their share now instead of that below."""
    row = np.int64(top.links[context, HEAD])
    while row != 0 and row != NOTHING:
        row -= 1
        token = top.nodes[row, TOKEN]
        old = find(below, top.nodes[row, PARENT], token)
        before = np.int64(below.nodes[old, COUNT]) if old >= 0 else 0
        gain = discounted_share(discounts, k, np.int64(top.nodes[row, COUNT])) - discounted_share(discounts, k, before)
        p[token] += gain / total
        row = np.int64(top.links[row, NEXT])


@inlined
def foresee_row(top, below, successors, discounts, contexts, length, p):
    p[:] = 1.0 / len(p)
    for k in range(length + 1):
        total = node_cell(top, below, contexts[k], TOTAL)
        if total == 0:
            return
        p *= left_over(top, below, contexts[k], discounts, k) / total
        shared = node_cell(top, below, contexts[k], ID)
        if shared < len(successors.tokens):  # else the context is new
            for j in range(successors.starts[shared], successors.starts[shared + 1]):
                count = np.int64(successors.counts[j])
                p[successors.tokens[j]] += discounted_share(discounts, k, count) / total
        if contexts[k] >= 0 and len(top.links) > 0:
            add_changes(top, below, contexts[k], discounts, k, total, p)


@Kernel
def foresee(data):
    """p of every token. `successors` are those of the shared table: the lower or the only one.

    Words: the upper and the lower table, successors, discounts, lengths of the longest contexts
    [rows], these [rows · order], p [rows · V] to be filled, order, V.
    """
    top, below, successors = table_at(data, 2), table_at(data, 10), successors_at(data, 18)
    discounts, lengths = matrix(data, 24, 3, np.float64), array(data, 26, np.int64)
    contexts, p = array(data, 28, np.int64), array(data, 30, np.float64)
    order, vocabulary = word(data, 32), word(data, 33)
    for row in range(len(lengths)):
        foresee_row(
            top, below, successors, discounts, contexts[row * order : (row + 1) * order],
            lengths[row], p[row * vocabulary : (row + 1) * vocabulary],
        )  # fmt: skip
