"""What stands beside the tensors of a linear part: its facts, as JSON in a tensor of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from ..errors import LangevinError

ClassWeight = Literal["balanced"] | None
RECORD = "record"


class LinearRecord(BaseModel):
    """Facts of a linear part; n-grams are absent where it reads vectors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["langevin linear part 2"] = "langevin linear part 2"
    classes: tuple[str, ...] = Field(min_length=2)
    class_weight: ClassWeight
    seed: int
    draws: int = Field(ge=1)
    prior_variance: float = Field(gt=0, allow_inf_nan=False)
    least: int = Field(ge=1)
    nll: float = Field(allow_inf_nan=False)
    words: tuple[str, ...] | None
    characters: tuple[str, ...] | None

    @model_validator(mode="after")
    def agree(self) -> LinearRecord:
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("a class stands there twice")
        if (self.words is None) != (self.characters is None):
            raise ValueError("n-grams of words and of characters belong together")
        return self

    @property
    def tensors(self) -> set[str]:
        """Names of the tensors that it must come with."""
        dense = self.words is None
        rows = {"centre", "scale"} if dense else {"words_idf", "characters_idf"}
        return {RECORD, "weights", "deviation", *rows}


def pack(record: LinearRecord) -> Tensor:
    return torch.frombuffer(bytearray(record.model_dump_json().encode()), dtype=torch.uint8)


def unpack(tensors: Mapping[str, Tensor]) -> LinearRecord:
    """The facts, checked; the tensors they need are there, float32 and finite."""
    raw = tensors.get(RECORD)
    if raw is None or raw.dtype != torch.uint8 or raw.ndim != 1:
        raise LangevinError(f"expected the tensors of a linear part, got {names(tensors)}; "
                            f"name a file that langevin wrote")
    try:
        record = LinearRecord.model_validate_json(raw.numpy().tobytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise LangevinError(f"expected the facts of a linear part, {place} is wrong: "
                            f"{first['msg']}; fit it again") from None
    if set(tensors) != record.tensors:
        raise LangevinError(f"expected the tensors {', '.join(sorted(record.tensors))} of a linear "
                            f"part, got {names(tensors)}; fit it again")
    for name in record.tensors - {RECORD}:
        if tensors[name].dtype != torch.float32 or not bool(tensors[name].isfinite().all()):
            raise LangevinError(f"expected finite float32 numbers in {name} of a linear part, "
                                f"got others; fit it again")
    if bool((tensors["deviation"] < 0).any()):
        raise LangevinError("expected deviations of at least 0 in a linear part, got negative "
                            "ones; fit it again")
    return record


def names(tensors: Mapping[str, Tensor]) -> str:
    return ", ".join(sorted(tensors)[:8]) or "none"
