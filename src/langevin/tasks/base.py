"""What a task must supply to the one training loop, to evaluation and to averaging."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor, nn

Carry = Any
"""The detached recurrent state that a batch hands to the next, or None where batches are independent."""


class Task(Protocol):
    """One job on one data set. Everything else (loop, store, average, report) is shared."""

    name: str
    score: str
    """The metric that early stopping watches; lower is better."""
    num_data: int
    """N: how many terms the mean training loss stands for."""
    batches_per_epoch: int

    def build_model(self) -> nn.Module: ...

    def loss(self, model: nn.Module, epoch: int, index: int, carry: Carry) -> tuple[Tensor, Carry]:
        """Mean negative log-likelihood of one training batch, and the state for the next."""

    def log_probs(self, model: nn.Module, split: str, mask_seed: int | None = None) -> Tensor:
        """Log-probabilities that can be averaged over samples: of each observed token, or of every class.

        Dropout is off, or on with the masks of this seed.
        """

    def metrics(self, log_probs: Tensor, split: str) -> dict[str, float]:
        """Numbers from (averaged) log-probabilities."""
