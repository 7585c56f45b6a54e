"""Which captioned images are for training, validation and test, where their file does not say.

A hash of the image's name decides: the same on every machine, whatever else is in the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import LangevinError
from .corpora import SPLITS
from .folds import SPLIT_SEED

MOST_HELD = 5000
"""Images of a split that is held out, at most: more would only make training slower."""


@dataclass(frozen=True)
class Shares:
    """Of the images, held out where the file names no such split."""

    valid: float = 0.1
    test: float = 0.1


def complete_splits(
    texts: Mapping[str, Sequence[str]], splits: Mapping[str, list[str]], shares: Shares,
    source: str,
) -> dict[str, list[str]]:
    """All three splits: those that are named, and the rest held out of training, or of all."""
    if splits and "train" not in splits:
        raise LangevinError(
            f"expected images of the train split in {source}, got {' and '.join(splits)} alone; "
            f"name them train in the column split, or leave the splits out"
        )
    missing = [split for split in ("test", "valid") if split not in splits]
    rest = splits.get("train") or list(texts)
    order, whole, found = sorted(rest, key=hashed_place), len(rest), dict(splits)
    for split in missing:
        share = shares.test if split == "test" else shares.valid
        count = min(MOST_HELD, max(1, round(share * whole)))
        held, order = set(order[:count]), order[count:]
        found[split] = [name for name in rest if name in held]
    left = set(order)
    found["train"] = [name for name in rest if name in left]
    if not left:
        raise LangevinError(
            f"expected at least {len(missing) + 1} images in {source}, got {whole}: none is left "
            f"for training; add some"
        )
    return {split: found[split] for split in SPLITS}


def hashed_place(name: str) -> bytes:
    """Where the hash puts an image."""
    return hashlib.blake2b(f"{SPLIT_SEED}:captions:{name}".encode(), digest_size=8).digest()


def describe_splits(splits: Mapping[str, Sequence[str]]) -> str:
    """How many images each split has."""
    return ", ".join(f"{len(names):,} {split}" for split, names in splits.items())
