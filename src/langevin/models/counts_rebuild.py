"""Compiled passes over a whole table of n-grams: its slots, what follows each, one order less.

numba's cache on disk watches this file alone: after a change in counts_rows.py, touch it too.
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from ..samplers.cpu.table import Kernel, word
from .counts_rows import (
    COUNT,
    ID,
    MORE,
    PARENT,
    TOKEN,
    TOTAL,
    answer,
    array,
    copy_row,
    enter,
    find,
    inlined,
    matrix,
    table_at,
)


@Kernel
def fill_slots(data):
    """Put all rows into slots that are empty. Words: the table."""
    table = table_at(data, 2)
    for row in range(table.size[0]):
        enter(table.slots, table.nodes, row)


@Kernel
def first_double(data):
    """The first row whose n-gram another one has, or 0. Words: the table, its slots filled."""
    table, double = table_at(data, 2), 0
    for row in range(1, table.size[0]):
        if find(table, table.nodes[row, PARENT], table.nodes[row, TOKEN]) != row:
            double = row
            break
    answer(data, double)


@inlined
def measure(nodes, lengths):
    """How many tokens each n-gram has; parents stand before their children."""
    for row in range(1, len(lengths)):
        lengths[row] = lengths[nodes[row, PARENT]] + 1


@Kernel
def measure_all(data):
    """Words: rows, their lengths to be filled."""
    measure(matrix(data, 2, 8, np.uint32), array(data, 4, np.uint8))


@Kernel
def recount(data):
    """What followed each n-gram, and how many types have which count, from the counts alone.

    Words: rows, their lengths, kinds.
    """
    nodes, lengths = matrix(data, 2, 8, np.uint32), array(data, 4, np.uint8)
    kinds = matrix(data, 6, 4, np.int64)
    kinds[:] = 0
    for row in range(len(lengths)):
        for column in range(TOTAL, MORE + 1):
            nodes[row, column] = 0
    for row in range(1, len(lengths)):
        parent, count = np.int64(nodes[row, PARENT]), int(nodes[row, COUNT])
        if count > 0:
            nodes[parent, TOTAL] += count
            nodes[parent, TOTAL + min(count, 3)] += 1
        if 0 < count < 5:
            kinds[lengths[row] - 1, count - 1] += 1


@Kernel
def drop_longest(data):
    """Remove the n-grams of `order` tokens.

    Those of one token less then count occurrences, which is how often they were followed, and once
    more for the one in which the text ends so far (`last`, or 0). Words: rows, their lengths, their
    new numbers to be filled, order, last. Answers how many rows stay.
    """
    nodes, lengths = matrix(data, 2, 8, np.uint32), array(data, 4, np.uint8)
    numbers, order, last = array(data, 6, np.uint32), word(data, 8), word(data, 9)
    stay = 1
    for row in range(1, len(lengths)):
        if lengths[row] == order:
            continue
        copy_row(nodes, row, nodes, stay)
        nodes[stay, PARENT] = numbers[nodes[row, PARENT]]
        nodes[stay, ID] = stay
        if lengths[row] == order - 1:
            nodes[stay, COUNT] = nodes[row, TOTAL] + (1 if row == last else 0)
        numbers[row] = stay
        stay += 1
    answer(data, stay)
