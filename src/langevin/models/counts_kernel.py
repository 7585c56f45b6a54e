"""The compiled loop behind `counts.py`, which learns and reads.

Whoever stands in a text holds the rows of the n-grams of length 0, 1, … that end there (see
`counts_rows.py`). The next token makes each of them longer by one, so that a position takes one
search for each length, none of which waits for another.

numba's cache on disk watches this file alone: after a change in counts_rows.py, touch it and the
other two with kernels (counts_rebuild.py, counts_successors.py).
"""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import math

import numpy as np

from ..samplers.cpu.table import Kernel, prefetch, word
from .counts_rows import (
    COUNT,
    HEAD,
    ID,
    MORE,
    NEXT,
    NOTHING,
    ONES,
    TOTAL,
    TWOS,
    answer,
    append,
    array,
    node_cell,
    find,
    has_room,
    home,
    inlined,
    lift,
    matrix,
    risen,
    scramble,
    table_at,
)

TOP, BELOW, KINDS, DISCOUNTS, LENGTHS, CONTEXTS, TOKENS, OUT = 2, 10, 18, 20, 22, 24, 26, 28
ORDER, VOCABULARY, START, COUNTS = range(30, 34)
"""Words of `read`."""
LEAST = 0.05
"""A discount for j lies between this and j minus this."""


@inlined
def search(top, below, contexts, length, token, ngrams):
    """Put the n-grams that end in this token into ngrams[1:]; returns the length of the longest."""
    for k in range(length + 1):
        x = scramble(node_cell(top, below, contexts[k], ID), token)
        prefetch(top.slots, home(top.slots, x))
    for k in range(length + 1):
        parent = node_cell(top, below, contexts[k], ID)
        row = find(top, parent, token)
        if row < 0:
            row = ~find(below, parent, token) if below.size[0] > 0 else 0
        if row == 0:  # the empty n-gram follows nothing
            return k
        ngrams[k + 1] = row
    return length + 1


@inlined
def discount(discounts, k, count):
    return discounts[k, min(count, 3) - 1]


@inlined
def left_over(top, below, place, discounts, k):
    """What the discounts of a context leave to the shorter one, in counts."""
    return (
        discounts[k, 0] * node_cell(top, below, place, ONES)
        + discounts[k, 1] * node_cell(top, below, place, TWOS)
        + discounts[k, 2] * node_cell(top, below, place, MORE)
    )


@inlined
def probability(top, below, contexts, length, ngrams, longest, discounts, vocabulary):
    """Of the token that these n-grams end in, from the empty context up."""
    p = 1.0 / vocabulary
    for k in range(length + 1):
        total = node_cell(top, below, contexts[k], TOTAL)
        if total == 0:
            break
        count = node_cell(top, below, ngrams[k + 1], COUNT) if k < longest else 0
        share = (count - discount(discounts, k, count)) / total if count > 0 else 0.0
        p = share + left_over(top, below, contexts[k], discounts, k) / total * p
    return p


@inlined
def estimate(kinds, discounts, k):
    """Discounts from how many types were counted once, twice, three and four times; half of j
    where there are none to tell."""
    once = kinds[k, 0] + 2 * kinds[k, 1]
    for j in range(1, 4):
        guess = j / 2
        if once > 0 and kinds[k, j - 1] > 0:
            guess = j - (j + 1) * (kinds[k, 0] / once) * kinds[k, j] / kinds[k, j - 1]
        discounts[k, j - 1] = min(max(guess, LEAST), j - LEAST)


@inlined
def note_gram(nodes, kinds, k, context, count):
    """A type of this context that had this count gets one more."""
    nodes[context, TOTAL] += 1
    if count == 0:
        nodes[context, ONES] += 1
    elif count == 1:
        nodes[context, ONES] -= 1
        nodes[context, TWOS] += 1
    elif count == 2:
        nodes[context, TWOS] -= 1
        nodes[context, MORE] += 1
    if 0 < count < 5:
        kinds[k, count - 1] -= 1
    if count < 4:
        kinds[k, count] += 1


@inlined
def chain(links, context, row):
    """List a row among the types of its context that have changed, once."""
    if links.shape[0] > 0 and links[row, NEXT] == 0:
        head = links[context, HEAD]
        links[row, NEXT] = head if head > 0 else NOTHING
        links[context, HEAD] = row + 1


@inlined
def count_token(top, below, contexts, length, ngrams, kinds, discounts, exact):
    """Add one to the longest n-gram, and to the shorter ones until one had been there before."""
    for k in range(length, -1, -1):
        row, context = lift(top, below, ngrams[k + 1]), lift(top, below, contexts[k])
        ngrams[k + 1], contexts[k] = row, context
        count = np.int64(top.nodes[row, COUNT])
        top.nodes[row, COUNT] = count + 1
        note_gram(top.nodes, kinds, k, context, count)
        chain(top.links, context, row)
        if exact:
            estimate(kinds, discounts, k)
        if count > 0:
            break
    for k in range(1, length + 2):
        ngrams[k] = risen(top, below, ngrams[k])


@inlined
def read_row(
    top, below, kinds, discounts, tokens, start, contexts, length, out, vocabulary, counts
):
    """Returns how many tokens were read, and the length of the longest context at the end."""
    order = len(contexts)
    ngrams = np.zeros(order + 1, np.int64)
    scores = len(out) > 0
    for i in range(len(tokens)):
        if counts and not has_room(top, order):
            return i, length
        token = tokens[i]
        longest = search(top, below, contexts, length, token, ngrams)
        if scores:
            p = probability(top, below, contexts, length, ngrams, longest, discounts, vocabulary)
            out[i] = math.log(p)
        if counts:
            for k in range(longest, length + 1):
                parent = node_cell(top, below, contexts[k], ID)
                ngrams[k + 1] = append(top, below, parent, token)
            longest = length + 1
            if i >= start:
                count_token(top, below, contexts, length, ngrams, kinds, discounts, scores)
        length = min(longest, order - 1)
        for k in range(1, length + 1):
            contexts[k] = ngrams[k]
    return len(tokens), length


@Kernel
def read_tokens(data):
    """Read rows of tokens on, from where their contexts stand.

    Words: the upper and the lower table; kinds [order, 4], discounts [order, 3]; lengths of the
    longest contexts [rows], these [rows · order]; tokens [rows · n], log p [rows · n] to be filled
    (or nothing); order, vocabulary, start, whether to count. The first `start` tokens only stand
    before a text. Answers how many tokens of the last row were read: fewer when the table is full.
    """
    top, below = table_at(data, TOP), table_at(data, BELOW)
    kinds, discounts = matrix(data, KINDS, 4, np.int64), matrix(data, DISCOUNTS, 3, np.float64)
    lengths, contexts = array(data, LENGTHS, np.int64), array(data, CONTEXTS, np.int64)
    tokens, out = array(data, TOKENS, np.int64), array(data, OUT, np.float64)
    order, vocabulary = word(data, ORDER), word(data, VOCABULARY)
    start, counts = word(data, START), word(data, COUNTS) != 0
    rows = len(lengths)
    n, told, done = len(tokens) // max(1, rows), len(out) // max(1, rows), 0
    for row in range(rows):
        done, lengths[row] = read_row(
            top, below, kinds, discounts, tokens[row * n : (row + 1) * n], start,
            contexts[row * order : (row + 1) * order], lengths[row],
            out[row * told : (row + 1) * told], vocabulary, counts,
        )  # fmt: skip
    answer(data, done)


@Kernel
def estimate_all(data):
    """Words: kinds, discounts."""
    kinds, discounts = matrix(data, 2, 4, np.int64), matrix(data, 4, 3, np.float64)
    for k in range(len(kinds)):
        estimate(kinds, discounts, k)
