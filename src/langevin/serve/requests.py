"""What a request may say: typed, strict, nothing else allowed."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat

def refuse_halves(text: str) -> str:
    """JSON can spell half a letter, which no text has."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("expected whole letters, got half a surrogate pair")
    return text


Words = Annotated[str, AfterValidator(refuse_halves)]
Positive = Annotated[int, Field(ge=1)]


class Request(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class ScoreRequest(Request):
    """A text to score token by token."""

    text: Words
    adapt: bool = False
    """Counts go on counting while they read, and the weights of the pool follow."""


class NextRequest(Request):
    """What comes after a text."""

    text: Words = ""
    top: Positive = 10
    """So many of the likeliest tokens."""
    tokens: Annotated[int, Field(ge=0)] | None = None
    """Only so many tokens of the text stand before; None: all of it."""


class GenerateRequest(Request):
    """A text to continue."""

    prompt: Words = ""
    length: Positive = 200
    """In tokens."""
    softmax_temperature: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.8
    """Each token is drawn from p^(1/softmax_temperature); 0 takes the likeliest."""
    top_k: Positive | None = None
    """Keeps the k likeliest tokens."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Keeps the fewest tokens that hold this probability."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """The same seed writes the same text."""
    sample: Annotated[int, Field(ge=0)] | None = None
    """The number of one weight sample that writes alone; None: the average of all."""


class ClassifyRequest(Request):
    """One text or many."""

    text: Words | None = None
    texts: list[Words] | None = None
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Adds the set of classes that misses the true one in at most this share of new texts."""
    draws: bool = False
    """Adds the probabilities by each draw."""
    members: bool = False
    """Adds the probabilities by each member of a pool, averaged over its draws."""

    @property
    def all_texts(self) -> list[str]:
        return [*([] if self.text is None else [self.text]), *(self.texts or [])]


class CaptionSearch(Request):
    """How captions are searched for; beside a picture these stand in the query, where all is
    text."""

    model_config = ConfigDict(strict=False)

    beam: Positive = 5
    top: Positive = 1
    """Captions of the average; at most the beam."""
    per_sample: Annotated[int, Field(ge=0)] = 0
    """So many single samples write one of their own."""


class CaptionRequest(CaptionSearch):
    """The features of a picture, as the model was trained on."""

    model_config = ConfigDict(strict=True)

    features: list[FiniteFloat]
