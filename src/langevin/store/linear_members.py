"""Linear parts that join the network of a classifier, and the weights of all, in its run folder.

`pool.json` is written last, with the checksum of each part: without it there are none. Parts over
n-grams contain words of the sentences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import safetensors.torch
from pydantic import Field, model_validator
from safetensors import SafetensorError
from torch import Tensor

from ..errors import LangevinError
from ..files import inside, read_bytes, write_atomic
from ..models.linear import LinearPosterior
from .manifest import Count, Sha256
from .records import Record, read_record, write_record

POOL = "pool.json"
NGRAMS, MEANS = "n-grams", "encoder"
"""Names of the parts: over n-grams of texts, and over the mean states of an encoder."""
PARTS = {NGRAMS: "pool-n-grams.safetensors", MEANS: "pool-encoder.safetensors"}
RECURRENT = "network"
"""The name of what the samples of the run are to the pool."""
LARGEST = 1 << 31
"""Bytes of the longest part that is read."""
REMEDY = "weigh the members of this run anew"

Weight = Annotated[float, Field(ge=0)]


class PoolRecord(Record):
    """What members there are, their weights, and what validation said of each."""

    SEALED_SINCE = 1

    format: Literal[1] = 1
    classes: tuple[str, ...] = Field(min_length=2)
    samples: tuple[str, ...]
    """All samples of the run when the members were weighed."""
    items: Annotated[int, Field(ge=1)]
    """Sentences of validation that weighed them."""
    weights: dict[str, Weight]
    nll: dict[str, Weight]
    """Of validation, by member and of the pool."""
    error: dict[str, Annotated[float, Field(ge=0, le=1)]]
    files: dict[str, Sha256] = Field(min_length=1)
    bytes: Count
    """Of all parts on disk."""
    refitted: bool = False
    """Whether the parts were fitted to validation too, after the weights were chosen."""

    @model_validator(mode="after")
    def _agree(self) -> PoolRecord:
        if not set(self.files) <= set(PARTS):
            raise ValueError(f"expected parts among {', '.join(PARTS)}")
        members = {RECURRENT, *self.files}
        if set(self.weights) != members:
            raise ValueError(f"expected weights of {', '.join(sorted(members))}")
        if {*self.nll} != {*members, "pool"} or {*self.error} != {*members, "pool"}:
            raise ValueError("expected scores of every member and of the pool")
        return self


@dataclass(frozen=True)
class LinearMembers:
    """The linear parts of a run, by name, and what is recorded of the pool."""

    record: PoolRecord
    parts: Mapping[str, LinearPosterior]


def has_linear_members(folder: Path) -> bool:
    return (folder / POOL).exists()


def write_linear_members(
    folder: Path, parts: Mapping[str, LinearPosterior], record: PoolRecord
) -> LinearMembers:
    """The parts first, then the record, which gets their checksums."""
    sums, size = {}, 0
    for name, part in parts.items():
        content = safetensors.torch.save(part.to_tensors())
        write_atomic(folder / PARTS[name], content)
        sums[name], size = hashlib.sha256(content).hexdigest(), size + len(content)
    whole = PoolRecord.model_validate(record.to_dict() | {"files": sums, "bytes": size},
                                      strict=False)
    write_record(folder / POOL, whole)
    return LinearMembers(whole, parts)


def read_linear_members(folder: Path) -> LinearMembers | None:
    """Compared with their checksums; None where a run has no pool."""
    if not has_linear_members(folder):
        return None
    record = read_record(inside(folder, POOL), PoolRecord, REMEDY)
    parts = {name: read_part(folder, name, record) for name in record.files}
    return LinearMembers(record, parts)


def read_part(folder: Path, name: str, record: PoolRecord) -> LinearPosterior:
    """One of the parts that the record names."""
    path = inside(folder, PARTS[name])
    content = read_bytes(path, LARGEST, what="a linear part", instead=REMEDY)
    if hashlib.sha256(content).hexdigest() != record.files[name]:
        raise LangevinError(f"{path} was changed after it was written (its checksum differs); "
                            f"{REMEDY}")
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
    except SafetensorError as error:
        raise LangevinError(f"expected a linear part in {path}, it cannot be read ({error}); "
                            f"{REMEDY}") from None
    part = LinearPosterior.from_tensors(tensors)
    if not set(part.classes) <= set(record.classes):
        raise LangevinError(f"expected classes of this run in {path}, got others; {REMEDY}")
    return part
