"""The data table of language models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from .base import Table


class TextData(Table):
    """Which text, how it is cut into tokens, and how tokens become batches."""

    corpus: str = Field("war_and_peace", description="a data set by name, or a text file")
    level: Literal["byte", "char", "word"] = Field(
        "byte", description="what a token is: byte, char or word"
    )
    running: bool = Field(
        False, description="words only: line ends are mere white space, not ends of sentences"
    )
    min_count: int = Field(1, ge=1, description="words seen less often become <unk>")
    max_vocab: int | None = Field(
        None,
        ge=2,
        description="so many of the most frequent words, with <unk> and <eos>; None: all",
    )
    batching: Literal["successive", "random"] = Field(
        "successive", description="successive windows that carry the state on, or random ones"
    )
    batch_size: int = Field(32, ge=1, description="windows in a batch")
    window: int = Field(50, ge=1, description="tokens through which gradients go back")
    split: Literal["contiguous", "streams"] = Field(
        "contiguous",
        description="three consecutive parts, or batches of parallel streams, as char-rnn (which "
        "also counts only the bytes that the text has)",
    )
    parts: tuple[float, float, float] = Field(
        (80, 10, 10), description="train, valid, test: shares; with streams, batches"
    )
    pool: Literal["counts", "none"] = Field(
        "none",
        description="counts: n-gram counts of the text beside the samples, weighed by validation",
    )
    counts_megabytes: int = Field(
        256,
        ge=1,
        le=2**20,
        description="memory of the counts; where it does not do, their n-grams are shorter",
    )

    @model_validator(mode="after")
    def _parts(self) -> TextData:
        if min(self.parts) <= 0:
            raise ValueError(
                f"parts must be three positive numbers (train, valid, test), got {self.parts}"
            )
        if self.split == "streams" and any(part != int(part) for part in self.parts):
            raise ValueError(
                f"with split='streams', parts count batches; expected whole numbers, got {self.parts}"
            )
        return self

    @property
    def score(self) -> str:
        """What patience watches on validation."""
        return "nll"

    def describe(self, num_data: int) -> str:
        batches = f"{self.batching} batches of {self.batch_size}×{self.window}"
        return f"{self.corpus} by {self.level}, {batches}, N = {num_data}"


ENOUGH, ENOUGH_WORDS = 3_000_000, 1_000_000
"""Tokens in all passes over a small text: bytes or characters, and words."""


def settings_by_size(level: str, tokens: int) -> dict[str, dict[str, int | float]]:
    """What a text of so many training tokens gets, by table; nothing of it depends on the epochs.

    Fewer tokens are passed over more often, in smaller batches, so that there are steps enough;
    where validation turns before, training stops. Gradients are clipped (`text.toml`), which
    lets the rate of bytes be so high. What was measured, and what was not, is in docs/log.md of
    2026-11-19.
    """
    few, tiny = tokens < 500_000, tokens < 50_000
    if level == "word":
        return {
            "data": {"batch_size": 20, "window": 35},
            "model": {"hidden": 128 if few else 200, "layers": 1},
            "sampler": {"lr": 4e-3 if few and not tiny else 8e-3, "prior_var": 0.1},
            "run": {"epochs": passes(8, ENOUGH_WORDS, tokens) if few else 5},
        }
    return {
        "data": {"batch_size": 32 if few else 50, "window": 50},
        "model": {"hidden": 256, "layers": 1, "dropout": 0.2 if few else 0.0},
        "sampler": {"lr": 1.6e-2 if few else 1.2e-2, "prior_var": 1.0},
        "run": {"epochs": passes(12, ENOUGH, tokens) if few else 6},
    }


def passes(least: int, enough: int, tokens: int) -> int:
    """Epochs of a small text, in which so many tokens are read."""
    return min(40, max(least, enough // max(1, tokens)))
