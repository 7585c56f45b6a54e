"""An arm of networks pooled with counts, as langevin pools its posterior: weights by validation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from langevin.models.counts import Counts
from langevin.posterior.mixture import fit_weights, log_mixture
from langevin.posterior.switching import follow

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


def share_of_network(network: Predictor, counts: Counts, data: Splits) -> float:
    """What validation gives to the network; the counts must not have seen it."""
    members = [log_mixture(observed(network, data.valid, data.vocabulary.start), network.weights),
               counts.log_probs(data.valid).double()]
    return float(fit_weights(torch.stack(members))[0])


def read_on(network: Predictor, counts: Counts, share: float, data: Splits) -> Tensor:
    """nll of each token of the test where counts count on and all weights follow what is read."""
    log_p = torch.cat([observed(network, data.test, data.vocabulary.start),
                       counts.log_probs(data.test, adapt=True)[None].double()])
    prior = torch.cat([share * network.weights, torch.tensor([1 - share]).double()])
    trace, _ = follow(log_p, prior)
    return -log_mixture(log_p, trace)
