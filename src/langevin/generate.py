"""Text from the averaged predictive distribution: each sample reads along with a state of its own."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from .errors import LangevinError
from .posterior.average import LogMean
from .posterior.store import Sample


@torch.no_grad()
def generate(
    model: nn.Module, samples: list[Sample], prompt: Tensor, length: int, *, temperature: float = 1.0, seed: int = 0
) -> Iterator[int]:
    """Yield `length` tokens after the prompt. Temperature 0 takes the most probable token each time."""
    if temperature < 0:
        raise LangevinError(f"temperature must be zero or positive, got {temperature}")
    if not len(prompt):
        raise LangevinError("expected a prompt of at least one token, got none; pass --prompt with some text")
    members = []
    for sample in samples:
        member = copy.deepcopy(model).eval()
        sample.load_into(member)
        members.append(member)
    generator = torch.Generator().manual_seed(seed)
    carries: list[object] = [None] * len(members)
    tokens = prompt[None]
    for _ in range(length):
        mean = LogMean()
        for number, member in enumerate(members):
            logits, carries[number] = member(tokens, carries[number])
            mean.add(torch.log_softmax(logits[0, -1].cpu().double(), dim=-1))
        log_p = mean.value()
        if temperature == 0:
            token = int(log_p.argmax())
        else:
            token = int(torch.multinomial(torch.softmax(log_p / temperature, dim=-1), 1, generator=generator))
        yield token
        tokens = torch.tensor([[token]])
