"""Counts as tensors for a safetensors file, and back from a file that anyone may have touched.

Kept are parent, token and count of every n-gram, in the smallest integers that hold them (7 to 10
bytes each); all else follows from these. They contain the text.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from ..errors import LangevinError
from .counts_rebuild import first_double
from .counts_rows import COUNT, ID, NOTHING, PARENT, TOKEN, run
from .counts_table import CountedNgrams

COLUMNS = {"parents": PARENT, "tokens": TOKEN, "counts": COUNT}
INTEGERS = (torch.uint8, torch.int16, torch.int32, torch.int64)


def ngram_tensors(ngrams: CountedNgrams) -> dict[str, Tensor]:
    """Of all rows but the first, the empty n-gram."""
    rows = ngrams.nodes[1 : ngrams.size[0]]
    return {name: smallest(rows[:, column]) for name, column in COLUMNS.items()}


def smallest(numbers: np.ndarray) -> Tensor:
    most = int(numbers.max(initial=0))
    dtype = next(dtype for dtype in INTEGERS if most <= torch.iinfo(dtype).max)
    return torch.from_numpy(numbers.astype(np.int64)).to(dtype)


def fill_rows(ngrams: CountedNgrams, columns: Mapping[str, Tensor], vocabulary: int) -> None:
    """Put stored rows into an empty table, after checks of all that the loops rely on."""
    values = {name: column.long().numpy() for name, column in columns.items()}
    parents, tokens, counts = (values[name] for name in COLUMNS)
    size = 1 + len(parents)
    if size > ngrams.capacity:
        raise damaged(f"{size} n-grams where memory is for {ngrams.capacity}")
    refuse_outside("parents", parents, np.arange(size - 1))
    refuse_outside("tokens", tokens, np.full(size - 1, vocabulary - 1))
    refuse_outside("counts", counts, np.full(size - 1, NOTHING))
    totals = np.bincount(parents, counts, minlength=1)
    if totals.max(initial=0) > NOTHING:
        raise damaged("counts that no text of this world has")
    rows = ngrams.nodes[1:size]
    for name, column in COLUMNS.items():
        rows[:, column] = values[name]
    rows[:, ID] = np.arange(1, size)
    ngrams.size[0] = size
    if (longest := int(ngrams.measure().max())) > ngrams.order:
        raise damaged(f"n-grams of {longest} tokens where order is {ngrams.order}")
    ngrams.refresh()
    if run(first_double, *ngrams.table):
        raise damaged("an n-gram that is there twice")


def refuse_outside(name: str, values: np.ndarray, most: np.ndarray) -> None:
    wrong = np.flatnonzero((values < 0) | (values > most))
    if len(wrong):
        row = int(wrong[0])
        raise damaged(f"{values[row]} among {name}, where 0 to {most[row]} may be")


def damaged(what: str) -> LangevinError:
    return LangevinError(f"expected counts as langevin stores them, found {what}: the file is "
                         f"damaged; take a copy of it, or learn the counts again")


def checked(tensors: Mapping[str, Tensor], names: tuple[str, ...]) -> dict[str, Tensor]:
    """The tensors of these names as vectors of integers; the columns are of one length."""
    for name in (*COLUMNS, *names):
        if name not in tensors:
            raise damaged(f"no {name}")
        tensor = tensors[name]
        if tensor.dtype not in INTEGERS or tensor.dim() != 1:
            raise damaged(f"{name} of {tensor.dtype} and shape {list(tensor.shape)}")
    lengths = {len(tensors[name]) for name in COLUMNS}
    if len(lengths) > 1:
        raise damaged("columns of different lengths")
    return {name: tensors[name] for name in (*COLUMNS, *names)}
