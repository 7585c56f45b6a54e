"""The running mean of the weights over about the last 100 steps, as a sample.

    n ← n + 1;   μ ← μ + max(1 − decay, 1/n)·(θ − μ)

The noise of the steps is averaged out without lowering the rate: alone, such a mean is better than
the weights at its end, and a few of them average better still.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import LangevinError

DECAY = 0.99


class RunningMean(nn.Module):
    """A copy of a model whose weights follow the mean of those in training.

    It takes as much memory as the model (`bytes`), no forward pass, and is a model itself: call it,
    or hand it to a store. `state_dict` has all that an exact resume needs. Buffers, such as those
    of a batch norm, are copied as they are. With `sparse=True` embeddings call the sampler's
    `catch_up_all` before `update`.

    >>> model = nn.Linear(2, 1)
    >>> mean = RunningMean(model)
    >>> mean.update()  # after each step of the sampler
    >>> mean(torch.zeros(1, 2)).shape
    torch.Size([1, 1])
    """

    def __init__(self, model: nn.Module, decay: float = DECAY) -> None:
        super().__init__()
        if not 0 <= decay < 1:
            raise LangevinError(f"decay must be in [0, 1), got {decay}; .99 is the mean over about "
                                f"100 steps")
        self.source, self.decay, self.steps = (model,), decay, 0
        """The model in a tuple: its weights are not ours."""
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights as they are now into the mean."""
        self.steps += 1
        share = max(1 - self.decay, 1 / self.steps)
        (model,) = self.source
        for mean, weight in zip(self.module.parameters(), model.parameters(), strict=True):
            mean.copy_(weight) if self.steps == 1 else mean.lerp_(weight, share)
        for kept, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
            kept.copy_(buffer)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return self.module(*inputs, **options)

    def train(self, mode: bool = True) -> RunningMean:
        """Always in evaluation mode, as it is never trained."""
        return super().train(False)

    @property
    def bytes(self) -> int:
        """Memory that it takes beside the model."""
        tensors = [*self.module.parameters(), *self.module.buffers()]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.steps)

    def set_extra_state(self, state: Tensor) -> None:
        self.steps = int(state)
