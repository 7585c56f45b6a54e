"""What an arm says of each token of a text: every distribution, read row beside row.

A text is cut into a few rows; each begins with the tokens before it, which are read but not scored,
so that little is lost at the cuts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from langevin.posterior.mixture import log_mixture, mixture

ROWS, BEFORE, CELLS = 8, 100, 24_000_000
"""Rows of a text; tokens before each; probabilities that are held at once."""


class Predictor(Protocol):
    """A mixture of parts; consecutive parts are the samples of one member."""

    size: int
    """Of the vocabulary."""
    weights: Tensor
    """[parts]."""
    sizes: list[int]
    """How many parts each member has."""

    def begin(self, befores: Sequence[Tensor]) -> None:
        """One row for each of these beginnings, which may be empty."""

    def foresee(self, tokens: Tensor) -> Tensor:
        """Read on, [rows, n] → log p of what comes after each, [parts, rows, n, V]."""


@dataclass(frozen=True)
class Chunk:
    places: Tensor
    """Where in the text the targets stand, [rows, n]; beyond the end −1."""
    targets: Tensor
    log_p: Tensor
    """[parts, rows, n, V]."""


def walk(predictor: Predictor, text: Tensor, start: int) -> Iterator[Chunk]:
    """A text, of which every token is foreseen once; `start` stands before the first."""
    rows = max(1, min(ROWS, len(text) // 200))
    length = -(-len(text) // rows)
    padded = torch.cat([torch.tensor([start]), text, text.new_full((rows * length - len(text),), start)])
    firsts = [row * length for row in range(rows)]
    window = max(1, min(100, CELLS // (rows * predictor.size * len(predictor.weights))))
    with torch.no_grad():
        predictor.begin([padded[max(0, first - BEFORE) : first] for first in firsts])
        for at in range(0, length, window):
            n = min(window, length - at)
            places = torch.tensor(firsts)[:, None] + torch.arange(at, at + n)
            targets = padded[places + 1]
            log_p = predictor.foresee(padded[places])
            yield Chunk(torch.where(places < len(text), places, -1), targets, log_p)


def observed(predictor: Predictor, text: Tensor, start: int) -> Tensor:
    """log p of each token by each part, [parts, tokens]."""
    found = torch.empty(len(predictor.weights), len(text), dtype=torch.float64)
    for chunk in walk(predictor, text, start):
        each = chunk.log_p.gather(-1, chunk.targets.expand(chunk.log_p.shape[:-1])[..., None])[..., 0]
        inside = chunk.places >= 0
        found[:, chunk.places[inside]] = each[:, inside].double()
    return found


@dataclass(frozen=True)
class TokenFacts:
    """Of each token of a text, in its order."""

    nll: Tensor
    tempered: Tensor
    """nll after the softmax temperature."""
    entropy: Tensor
    mutual_information: Tensor
    confidence: Tensor
    correct: Tensor


def facts(predictor: Predictor, text: Tensor, start: int, temperature: float) -> TokenFacts:
    """All that is told of a text."""
    found = torch.empty(6, len(text), dtype=torch.float64)
    for chunk in walk(predictor, text, start):
        flat, inside = chunk.log_p.flatten(1, 2), (chunk.places >= 0).flatten()
        said = mixture(flat, predictor.weights, predictor.sizes)
        targets = chunk.targets.flatten()[:, None]
        cooled = torch.log_softmax(said.log_probs / temperature, -1)
        best = said.log_probs.max(-1)
        rows = torch.stack([
            -said.log_probs.gather(-1, targets)[:, 0], -cooled.gather(-1, targets)[:, 0],
            said.entropy, said.mutual_information, best.values.exp(),
            (best.indices == targets[:, 0]).double(),
        ])  # fmt: skip
        found[:, chunk.places.flatten()[inside]] = rows[:, inside]
    return TokenFacts(*found.unbind())


def fit_temperature(predictor: Predictor, text: Tensor, start: int) -> float:
    """The softmax temperature under which the averaged distribution foresees this text best."""
    some = text[: max(2000, min(len(text), 4 * CELLS // predictor.size))]
    averaged = torch.empty(len(some), predictor.size)
    for chunk in walk(predictor, some, start):
        inside = (chunk.places >= 0).flatten()
        log_p = log_mixture(chunk.log_p.flatten(1, 2), predictor.weights)
        averaged[chunk.places.flatten()[inside]] = log_p[inside].float()
    targets = some[:, None]

    def nll(log_temperature: float) -> float:
        scaled = averaged / float(torch.tensor(log_temperature).exp())
        return float((scaled.logsumexp(-1) - scaled.gather(-1, targets)[:, 0]).mean())

    best = minimize_scalar(nll, bounds=(-1.0, 1.0), method="bounded", options={"xatol": 1e-3})
    return float(torch.tensor(best.x).exp())
