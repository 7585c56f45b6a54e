"""What a run remembers of its data, checked for what its task will read of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import LangevinError
from .records import explain_mismatch

REMEDY = "bring the file back as it was written, or train again"
Width = Annotated[int, Field(ge=1, le=10**7)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class DataFacts(BaseModel):
    """Of every task; what else is noted there is for people to read."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    data_sha256: str
    num_data: Annotated[int, Field(ge=1, lt=1 << 63)]


class Coverage(BaseModel):
    """Of word vectors."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    types: float
    tokens: float


class EncoderFacts(BaseModel):
    """Of a frozen encoder: by these another is told from it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    sha256: str
    config_sha256: str
    layers: Annotated[list[Annotated[int, Field(le=-1)]], Field(min_length=1)]
    width: Width


class SentenceFacts(DataFacts):
    split_sha256: str
    labels: Annotated[list[str], Field(min_length=1)]
    label_names: Annotated[list[str], Field(min_length=1)]
    class_counts: list[Count] = Field(default_factory=list)
    split_sizes: dict[str, Count]
    tokens: str
    embed: Annotated[int, Field(ge=0, le=10**7)]
    """0 where an encoder, or vectors that stay, take the place of trained words."""
    frozen: Annotated[int, Field(ge=0, le=10**7)] = 0
    encoder: EncoderFacts | None = None
    empty_texts: Count = 0
    cut_texts: Count = 0
    coverage: Coverage | None = None
    vectors_sha256: str | None = None


class ExtractorFacts(BaseModel):
    """Of the network that made features of pictures: by these another is told from it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    sha256: str
    config_sha256: str | None = None
    preprocess: str
    width: Width


class CaptionFacts(DataFacts):
    feature_width: Width
    extractor: ExtractorFacts | None = None
    features_sha256: str | None = None


FACTS: dict[str, type[DataFacts]] = {"classify": SentenceFacts, "caption": CaptionFacts}
"""By task; of the others those of every task."""


def check_facts(facts: dict[str, Any], task: str, source: Path) -> dict[str, Any]:
    """The same facts, refused by key where the task could not go on from them."""
    try:
        FACTS.get(task, DataFacts).model_validate(facts)
    except ValidationError as error:
        raise LangevinError(explain_mismatch(error, source, REMEDY)) from None
    return facts
