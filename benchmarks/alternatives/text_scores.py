"""Scores of an arm on a text, as one record."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from langevin.posterior.calibration import auroc, ece

from .foreseeing import Predictor, TokenFacts, facts, fit_temperature
from .records import Record
from .text_sets import Splits, TextSet

BLOCKS = 100
"""Of the test text, for standard errors: neighbours depend on one another."""
STATISTICS = ("entropy", "mutual_information", "nll")


def score_arm(predictor: Predictor, data: Splits, chosen: TextSet, held_out: Predictor | None = None
              ) -> Record:  # fmt: skip
    """All scores of a predictor whose choices are made; `held_out` is it before it saw
    validation."""
    start = data.vocabulary.start
    temperature = fit_temperature(held_out or predictor, data.valid, start)
    told = facts(predictor, data.test, start, temperature)
    record = of_nll(told.nll, chosen) | {
        "softmax_temperature": temperature, "tempered_nll": told.tempered.mean().item(),
        "ece": ece(told.confidence, told.correct), "networks": len(predictor.weights),
    }  # fmt: skip
    record["foreign"] = {
        name: separation(told, facts(predictor, text, start, temperature), chosen.extent)
        for name, text in data.foreign.items()
    }
    return record


def of_nll(nll: Tensor, chosen: TextSet) -> Record:
    """What one number for each token tells."""
    mean = nll.double().mean().item()
    blocks = min(BLOCKS, max(1, len(nll) // 100))
    each = nll[: len(nll) // blocks * blocks].view(blocks, -1).mean(1)
    return {
        "nll": mean, "perplexity": math.exp(mean), "tokens": len(nll),
        "bits_per_byte": mean / math.log(2) if chosen.level == "byte" else None,
        "blocks": [round(value, 6) for value in each.tolist()],
    }  # fmt: skip


def separation(own: TokenFacts, other: TokenFacts, extent: int) -> dict[str, dict[str, float]]:
    """How well the means over windows tell foreign text from the test's."""
    told = {}
    for name in STATISTICS:
        ours, theirs = (windows(getattr(text, name), extent) for text in (own, other))
        told["surprise" if name == "nll" else name] = {
            "auroc": auroc(theirs, ours), "fpr95": fpr95(theirs, ours)
        }
    return told


def windows(values: Tensor, extent: int) -> Tensor:
    return values[: len(values) // extent * extent].view(-1, extent).mean(1)


def fpr95(positive: Tensor, negative: Tensor) -> float:
    """Share of the negative at or above the score that 95 % of the positive reach."""
    threshold = positive.sort().values[math.floor(0.05 * len(positive))]
    return float((negative >= threshold).double().mean())


def mean_nll(log_p: Tensor) -> float:
    """Of equal parts, [parts, tokens]."""
    return -float((log_p.double().logsumexp(0) - math.log(len(log_p))).mean())


def last_of(log_p: Tensor) -> int:
    """How many of the last parts foresee a text best together."""
    counts = range(1, len(log_p) + 1)
    return min(counts, key=lambda count: mean_nll(log_p[-count:]))


def equal(parts: int) -> Tensor:
    return torch.full((parts,), 1 / parts, dtype=torch.float64)
