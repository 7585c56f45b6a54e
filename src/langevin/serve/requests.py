"""What a request may say: typed, strict, nothing else allowed."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ScoreRequest(Request):
    """A text to score token by token."""

    text: str
    adapt: bool = False
    """Counts go on counting while they read, and the weights of the pool follow."""


class NextRequest(Request):
    """What comes after a text."""

    text: str = ""
    top: Annotated[int, Field(ge=1, le=1000)] = 10


class GenerateRequest(Request):
    """A text to continue."""

    prompt: str = ""
    length: Annotated[int, Field(ge=1)] = 200
    softmax_temperature: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.8
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    sample: Annotated[int, Field(ge=0)] | None = None
    """The number of one weight sample that writes alone; None: the average of all."""


class ClassifyRequest(Request):
    """One text or many."""

    text: str | None = None
    texts: list[str] | None = None

    def all_texts(self) -> list[str]:
        return [*([] if self.text is None else [self.text]), *(self.texts or [])]


class CaptionRequest(Request):
    """The features of a picture, as the model was trained on."""

    features: list[float]
    beam: Annotated[int, Field(ge=1)] = 5
    top: Annotated[int, Field(ge=1)] = 1
    per_sample: Annotated[int, Field(ge=0)] = 0
