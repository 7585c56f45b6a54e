"""Texts → what a classifier reads of them, one tensor for each: in training, and of new texts."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from ..data.characters import beside_grams
from ..data.spelling import split_unknown, words_of
from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from .encoder import Encoder
from .state_cache import StateCache

log = logging.getLogger("langevin")

STATES = 8 * 2**30
"""Bytes of hidden states that are kept on disk; those longest unused go."""
SECONDS = 15.0
"""Between two lines about how far the encoder is."""


@dataclass(frozen=True)
class ReadTexts:
    """Texts as a network reads them, and what was out of the ordinary about each."""

    sentences: list[Tensor]
    empty: list[bool]
    """No word at all: the answer is the shares of the classes in training."""
    cut: list[bool]
    """Longer than what is read; what follows was not."""
    means: Tensor | None
    """The mean state of each text, where an encoder reads them."""


class TextReader(Protocol):
    def read(self, texts: Sequence[str], *, free: bool = False) -> ReadTexts: ...


@dataclass(frozen=True)
class WordReader:
    """Numbers of words, and with `characters` those of their n-grams beside them."""

    vocabulary: Vocabulary
    tokens: str
    """How a text is cut into words."""
    max_words: int
    characters: bool

    def read(self, texts: Sequence[str], *, free: bool = False) -> ReadTexts:
        """In `free` text for a model of tokenised sentences ("this?", not "this ?") a piece that
        the model does not know is cut at its punctuation."""
        words = [words_of(text, self.tokens) for text in texts]
        if free and self.tokens == "space":
            words = [split_unknown(own, self.vocabulary) for own in words]
        kept = [own[: self.max_words] for own in words]
        sentences = [self.vocabulary.encode_tokens(own) for own in kept]
        if self.characters:
            sentences = [beside_grams(numbers, own)
                         for numbers, own in zip(sentences, kept, strict=True)]
        return ReadTexts(sentences, [not own for own in words],
                         [len(own) > self.max_words for own in words], None)


@dataclass(frozen=True)
class StateReader:
    """Hidden states of a frozen encoder; a text of white space alone has none."""

    encoder: Encoder
    cache: StateCache | None = None

    def read(self, texts: Sequence[str], *, free: bool = False) -> ReadTexts:
        found = self.encoder.encode(list(texts), self.cache, Announced(len(texts)))
        empty = [not text.strip() for text in texts]
        sentences = [found[number][:0] if none else found[number]
                     for number, none in enumerate(empty)]
        long = set(found.long)
        return ReadTexts(sentences, empty, [at in long for at in range(len(texts))], found.means)


class Announced:
    """Says from time to time how far the encoder is."""

    def __init__(self, total: int) -> None:
        self.started = self.said = time.monotonic()
        self.total = total

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.said >= SECONDS or (done == total and now - self.started >= SECONDS):
            self.said = now
            log.info("the encoder has read %d of %d texts, after %.0f s", done, total,
                     now - self.started)


def cache_of_states() -> StateCache:
    """In LANGEVIN_CACHE, or where the system keeps caches of programs."""
    given = os.environ.get("LANGEVIN_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "langevin"
    return StateCache(Path(given or base) / "states", STATES)


def same_encoder(name: str, layers: Sequence[int], known: dict[str, object] | None) -> Encoder:
    """The encoder of a recipe; where a run remembers one, no other."""
    encoder = Encoder.open(name, layers)
    if known:
        for what, value in encoder.facts().items():
            if what != "name" and known.get(what) != value:
                raise LangevinError(
                    f"expected the encoder {known.get('name')} of this run ({what} "
                    f"{str(known.get(what))[:12]}…), {name} is another ({str(value)[:12]}…); bring "
                    f"the old one back, or train anew"
                )
    return encoder
