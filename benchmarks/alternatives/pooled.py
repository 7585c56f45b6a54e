"""An arm of networks pooled with counts, as langevin pools its posterior: weights by validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from langevin.models.counts import Counts
from langevin.posterior.mixture import fit_weights, log_mixture
from langevin.posterior.switching import fit_share, follow
from langevin.tasks.counting import crossed_log_probs

from .counted import CountsPredictor
from .foreseeing import Predictor, observed
from .text_sets import Splits


class PooledPredictor:
    """A linear mixture of a predictor and counts."""

    def __init__(self, network: Predictor, counts: Counts, share: float) -> None:
        self.network, self.counts, self.size = network, CountsPredictor(counts), network.size
        self.weights = torch.cat([share * network.weights, torch.tensor([1 - share]).double()])
        self.sizes = [*network.sizes, 1]

    def begin(self, befores: Sequence[Tensor]) -> None:
        self.network.begin(befores)
        self.counts.begin(befores)

    def foresee(self, tokens: Tensor) -> Tensor:
        both = self.network.foresee(tokens).double(), self.counts.foresee(tokens).double()
        return torch.cat(both)


@dataclass(frozen=True)
class PoolWeights:
    """What validation gives to the members."""

    network: float
    """Beside counts that stand still; they have the rest."""
    reading_on: Tensor
    """Of network, counts that count on, and counts of the text alone."""
    share: float
    """Of these, mixed back at each token."""


def weigh(network: Predictor, counts: Counts, data: Splits) -> PoolWeights:
    """The counts must not have seen validation."""
    said = log_mixture(observed(network, data.valid, data.vocabulary.start), network.weights)
    crossed = crossed_log_probs(data.task, counts.order, counts.memory)
    static = fit_weights(torch.stack([said[1:], crossed]))
    each = torch.stack([said, *(own.log_probs(data.valid, adapt=True).double()
                                for own in (counts, counts.blank()))])
    reading_on = fit_weights(each)
    return PoolWeights(float(static[0]), reading_on, fit_share(each, reading_on))


def read_on(network: Predictor, counts: Counts, weights: PoolWeights, data: Splits) -> Tensor:
    """nll of each token of the test where counts count on and all weights follow what is read."""
    counted = torch.stack([own.log_probs(data.test, adapt=True).double()
                           for own in (counts, counts.blank())])
    log_p = torch.cat([observed(network, data.test, data.vocabulary.start), counted])
    prior = torch.cat([weights.reading_on[0] * network.weights, weights.reading_on[1:]])
    trace, _ = follow(log_p, prior, share=weights.share)
    return -log_mixture(log_p, trace)
