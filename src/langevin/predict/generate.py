"""Text from the averaged predictive distribution: all samples read along at once, each with a state of its own."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from ..posterior.ensemble import Ensemble
from ..store.samples import Sample


@torch.no_grad()
def generate(
    model: nn.Module, samples: list[Sample], prompt: Tensor, length: int, *, temperature: float = 1.0, seed: int = 0,
    top_k: int | None = None, top_p: float | None = None,
) -> Iterator[int]:
    """Yield `length` tokens after the prompt. Temperature 0 takes the most probable token each time.

    `top_k` keeps the k most probable tokens, `top_p` the fewest that hold at least this probability.
    """
    if temperature < 0:
        raise LangevinError(f"temperature must be zero or positive, got {temperature}")
    if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
        raise LangevinError(f"expected top_k of at least 1 and top_p in (0, 1], got {top_k} and {top_p}")
    if not len(prompt):
        raise LangevinError("expected a prompt of at least one token, got none; pass --prompt with some text")
    ensemble = Ensemble(model.eval(), samples)
    generator = torch.Generator().manual_seed(seed)
    device = next(model.parameters()).device
    tokens, carry = prompt[None], None
    for _ in range(length):
        found = ensemble.log_probs(tokens.to(device), carry=carry)
        log_p, carry = found.log_probs[0, -1].cpu().double(), found.carry
        if temperature == 0:
            token = int(log_p.argmax())
        else:
            p = narrow(torch.softmax(log_p / temperature, dim=-1), top_k, top_p)
            token = int(torch.multinomial(p, 1, generator=generator))
        yield token
        tokens = torch.tensor([[token]])


def narrow(p: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """Zero where a token is not among the most probable ones that are wanted; not normalised."""
    ranked, order = p.sort(descending=True, stable=True)
    wanted = torch.ones_like(ranked, dtype=torch.bool)
    if top_k is not None:
        wanted[top_k:] = False
    if top_p is not None:
        wanted &= ranked.cumsum(0) - ranked < top_p  # until what came before holds enough
    return torch.zeros_like(p).index_copy_(0, order, ranked * wanted)
