"""Stratified splits that are the same on every machine: a hash of the item's number decides, never the run's seed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

SPLIT_SEED = 2017
"""Of all splits; part of what "fold 3 of MR" means, so it never changes."""


def dealt(labels: Sequence[int], items: Sequence[int], purpose: str) -> list[int]:
    """The items class after class, shuffled within each class by a hash of (seed, purpose, item)."""

    def draw(item: int) -> bytes:
        return hashlib.blake2b(f"{SPLIT_SEED}:{purpose}:{item}".encode(), digest_size=8).digest()

    return sorted(items, key=lambda item: (labels[item], draw(item)))


def fold_of(labels: Sequence[int], folds: int) -> list[int]:
    """The fold of each item. Sizes differ by at most one, in all and within each class."""
    number = [0] * len(labels)
    for place, item in enumerate(dealt(labels, range(len(labels)), "fold")):
        number[item] = place % folds
    return number


def hold_out(labels: Sequence[int], items: Sequence[int], share: float, purpose: str) -> tuple[list[int], list[int]]:
    """(rest, held out), both in their old order; each class gives its share, give or take one item."""
    order = dealt(labels, items, purpose)
    taken = {item for place, item in enumerate(order) if int((place + 1) * share) > int(place * share)}
    return [item for item in items if item not in taken], [item for item in items if item in taken]


def split_sha256(parts: dict[str, list[int]]) -> str:
    """One hash of who is in which split, to notice when a run is reopened with another split."""
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()
