"""What the model of War and Peace says of texts from elsewhere: surprise, and disagreement."""

from __future__ import annotations

import inspect
import json
import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..data.display import visible
from ..posterior.calibration import auroc
from ..posterior.scores import Result
from ..predict.foreign import Windows, below, held_out_surprise, read_windows
from ..predict.language import LanguagePosterior
from ..tasks.language_model import LanguageModelTask
from .stages import Stages

TOKENS = 16_000
"""Of each text, at most."""
HOME, SHUFFLED = "unseen Tolstoy", "the same words, shuffled"
LINES = (
    "The Emperor rode along the front of the troops and smiled.",
    "The Emperor rode along the front of the helicopters and smiled.",
    "L'Empereur passa devant le front des troupes et sourit.",
    "for troop in front: emperor.ride_past(troop, smile=True)",
)
"""One sentence as Tolstoy's translators might have it, then with a word that he could not know, in
another language, and as a program."""


@dataclass(frozen=True)
class ForeignKind(Result):
    """Texts of one kind, window by window."""

    name: str
    windows: int
    nll: float
    """Mean surprise, nats a byte."""
    percentile: float
    """Of the middle window among windows of validation, 0 to 1."""
    disagreement: float
    """Mutual information, nats a byte, a mean."""
    surprise_auroc: float | None
    """P(a window of this kind surprises more than one of unseen Tolstoy); None of Tolstoy."""
    disagreement_auroc: float | None
    surprises: tuple[float, ...]
    """Of the windows, nats a byte."""


@dataclass(frozen=True)
class Letter(Result):
    """A letter of a line."""

    letter: str
    surprise: float
    """−log p, nats."""
    disagreement: float
    """Mutual information about what comes here, nats."""


@dataclass(frozen=True)
class ForeignTexts(Result):
    """All kinds, and a few lines letter by letter."""

    window: int
    """Bytes of a window."""
    held_out: int
    """Windows of validation that percentiles are told among."""
    kinds: tuple[ForeignKind, ...]
    lines: tuple[tuple[Letter, ...], ...]


def read_foreign(posterior: LanguagePosterior, stages: Stages) -> ForeignTexts:
    """Read all kinds of text in windows, Tolstoy's own first."""
    _, window, held_out = held_out_surprise(posterior, "valid", TOKENS, stages)
    pool, texts = posterior.pool(), dict(foreign_texts(posterior))
    advance, read = stages.begin(len(texts) + 1), dict[str, Windows]()
    for name, tokens in texts.items():
        read[name] = read_windows(pool, tokens, window, TOKENS)
        advance()
    home = read[HOME]
    kinds = tuple(described_kind(name, own, home, held_out) for name, own in read.items())
    return ForeignTexts(window, len(held_out), kinds,
                        tuple(read_letters(posterior, line) for line in LINES))  # fmt: skip


def foreign_texts(posterior: LanguagePosterior) -> Iterator[tuple[str, Tensor]]:
    """Their tokens by name."""
    task = posterior.data
    assert isinstance(task, LanguageModelTask)
    home = torch.cat(task.evaluated["test"].texts)
    yield HOME, home
    text = posterior.vocabulary.decode(home[:TOKENS]).decode("utf-8", "replace")
    foreign = {
        SHUFFLED: shuffle_words(text),
        "French": Path(__file__).with_name("declaration.fr.txt").read_text("utf-8"),
        "program code": "".join(map(inspect.getsource, (textwrap, json))),
    }
    for name, own in foreign.items():
        yield name, posterior.read_source(own)[0]


def shuffle_words(text: str) -> str:
    """The words in another order; white space stays where it is."""
    pieces = re.split(r"(\s+)", text)
    words = pieces[::2]
    order = torch.randperm(len(words), generator=torch.Generator().manual_seed(0))
    pieces[::2] = [words[number] for number in order.tolist()]
    return "".join(pieces)


def described_kind(name: str, own: Windows, home: Windows, held_out: Tensor) -> ForeignKind:
    disagreement = own.between + own.within
    at_home = home.between + home.within
    foreign = own is not home
    return ForeignKind(
        name=name, windows=len(own.nll), nll=own.mean(own.nll),
        percentile=below(held_out, float(own.nll.median())), disagreement=own.mean(disagreement),
        surprise_auroc=auroc(own.nll, home.nll) if foreign else None,
        disagreement_auroc=auroc(disagreement, at_home) if foreign else None,
        surprises=tuple(own.nll.tolist()),
    )  # fmt: skip


def read_letters(posterior: LanguagePosterior, line: str) -> tuple[Letter, ...]:
    """A line, read after a line end."""
    tokens = posterior.score(f"\n{line}").tokens[1:]
    return tuple(
        Letter(visible(token.token), -math.log(token.p), token.mutual_information)
        for token in tokens
    )
