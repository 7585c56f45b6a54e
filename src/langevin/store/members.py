"""Members of a pool that lie beside the samples of a run: counts of its text, and all weights.

`members/members.json` is written last, with the checksum of the counts: without it there are none.
Counts contain the text that they were learnt from.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import safetensors.torch
from pydantic import Field, model_validator
from safetensors import SafetensorError

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import inside, read_bytes, write_atomic
from ..models.counts import LONGEST, Counts
from ..models.spelling import SYMBOLS, Spelling
from .manifest import Count, Sha256
from .records import Record, read_record, seal, write_record

MEMBERS, MEMBERS_RECORD, COUNTS = "members", "members.json", "counts.safetensors"
"""The folder, and what is in it."""
SPELLING = "spelling."
"""Before the names of the tensors that spell unknown words."""
NETWORK, COUNTED, OWN = "network", "counts", "counts of this text"
"""The names of the members: the average of the samples, the counts, and, where reading goes on,
counts that begin with the text that is read."""
LARGEST = 1 << 31
"""Bytes of the longest file of counts that is read."""
REMEDY = "make it again by 'langevin pool RUN'"

Share = Annotated[float, Field(ge=0, le=1)]
Nll = Annotated[float, Field(ge=0)]


class ReadingOn(Record):
    """How members are weighed where counts count on, chosen on validation read so."""

    weights: dict[str, Share]
    share: Share
    """Of these weights that is mixed back into those that follow the text, at each token."""

    @model_validator(mode="after")
    def _whole(self) -> ReadingOn:
        refuse_odd_weights(self.weights, NETWORK, COUNTED, OWN)
        return self


class MembersRecord(Record):
    """What members there are, their weights, and what validation said before it was counted."""

    SEALED_SINCE = 1

    format: Literal[1] = 1
    vocabulary: Sha256
    samples: tuple[str, ...]
    """All samples of the run when the members were weighed."""
    order: Annotated[int, Field(ge=1, le=LONGEST)]
    asked_order: Annotated[int, Field(ge=1, le=LONGEST)]
    """The one that validation preferred; memory may have allowed less when validation was
    counted."""
    bytes: Count
    """Of the counts in memory."""
    nll_by_order: dict[str, Nll]
    weights: dict[str, Share]
    reading_on: ReadingOn | None = None
    """None where validation was too small, and of runs of before there was such a choice."""
    weighed: bool
    """False where validation was too small, and the weights are equal."""
    tokens: Count
    """Of validation, on which the members were weighed."""
    nll: dict[str, Nll]
    """Of validation, by member and of the pool; each fifth of it by counts of all the rest."""
    surprise: tuple[Nll, ...] = ()
    """Percentiles of the pool's nll over windows of validation, before it was counted."""
    window: Count
    """Tokens of each of these windows."""
    file_sha256: Sha256

    @model_validator(mode="after")
    def _whole(self) -> MembersRecord:
        refuse_odd_weights(self.weights, NETWORK, COUNTED)
        return self


def refuse_odd_weights(weights: dict[str, float], *names: str) -> None:
    if set(weights) != set(names) or abs(sum(weights.values()) - 1) > 1e-6:
        raise ValueError(f"expected weights of {' and '.join(names)} that sum to 1")


@dataclass(frozen=True)
class Members:
    """The members of a run beside its samples."""

    record: MembersRecord
    counts: Counts
    spelling: Spelling | None = None
    """Of words that the vocabulary does not have."""


def vocabulary_sum(vocabulary: Vocabulary) -> str:
    """By which the vocabulary of members is told from another."""
    return seal(vocabulary.to_json())


def has_members(folder: Path) -> bool:
    return (folder / MEMBERS / MEMBERS_RECORD).exists()


def write_members(
    folder: Path, record: MembersRecord, counts: Counts, spelling: Spelling | None
) -> MembersRecord:
    """The tensors of all counts first, then the record, which knows their checksum."""
    tensors = counts.to_tensors()
    if spelling is not None:
        of_letters = spelling.counts.to_tensors()
        tensors |= {f"{SPELLING}{name}": tensor for name, tensor in of_letters.items()}
    content = safetensors.torch.save(tensors)
    write_atomic(folder / MEMBERS / COUNTS, content)
    sum_of_file = hashlib.sha256(content).hexdigest()
    whole = record.model_copy(update={"file_sha256": sum_of_file})
    write_record(folder / MEMBERS / MEMBERS_RECORD, whole)
    return whole


def read_members_record(folder: Path) -> MembersRecord | None:
    """None where there are no members."""
    if not has_members(folder):
        return None
    return read_record(inside(folder, f"{MEMBERS}/{MEMBERS_RECORD}"), MembersRecord, REMEDY)


def read_members(folder: Path, vocabulary: Vocabulary) -> Members | None:
    """The members of a run or an exported folder, compared with their checksums."""
    record = read_members_record(folder)
    if record is None:
        return None
    path = inside(folder, f"{MEMBERS}/{COUNTS}")
    if record.vocabulary != vocabulary_sum(vocabulary):
        raise LangevinError(f"expected counts over the vocabulary of {folder}, got those of another "
                            f"in {path}; {REMEDY}")
    content = read_bytes(path, LARGEST, what="counts", instead=REMEDY)
    if hashlib.sha256(content).hexdigest() != record.file_sha256:
        raise LangevinError(f"{path} was changed after it was written (its checksum differs); "
                            f"{REMEDY}")
    try:
        tensors = safetensors.torch.load(content)
    except SafetensorError as error:
        raise LangevinError(f"expected counts in {path}, it cannot be read ({error}); "
                            f"{REMEDY}") from None
    of_letters = {name.removeprefix(SPELLING): tensor for name, tensor in tensors.items()
                  if name.startswith(SPELLING)}
    spelling = Spelling(Counts.from_tensors(of_letters, SYMBOLS)) if of_letters else None
    return Members(record, Counts.from_tensors(tensors, len(vocabulary)), spelling)
