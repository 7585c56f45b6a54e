"""A small transformer for as many seconds of processor time as the recurrent network takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from langevin.data.batching import RandomBatches

from .one_network import CLIP, Trained, copied
from .records import clocked
from .text_scores import equal
from .text_sets import Splits

WIDTH, HEADS, LAYERS, CONTEXT, ROWS = 128, 4, 3, 128, 16
TRIED, FEWEST = 10, 20
"""Steps that are timed to see how many there are seconds for, and the least of these."""


class Block(nn.Module):
    """Attention to what stands before, and a layer for each place, each on normalised inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.attend(self.first(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.joined(seen.transpose(1, 2).flatten(2))
        grown: Tensor = x + self.narrow(F.gelu(self.wide(self.second(x))))
        return grown


class Transformer(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.last, self.output = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """[rows, n] → logits [rows, n, V]."""
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        logits: Tensor = self.output(self.last(self.blocks(x)))
        return logits


def train_transformer(data: Splits, rate: float, seed: int, seconds: float) -> tuple[Trained, int]:
    """AdamW, 5 % of warm-up, half a cosine to zero; the number of steps is resolved at the
    start."""
    steps = max(FEWEST, round(seconds / seconds_of_step(data, rate)))
    torch.manual_seed(seed)
    model = Transformer(data.size)
    with clocked() as clock:
        run(model, data, rate, seed, steps, steps)
    return Trained(copied(model), [], clock.cpu), steps


def seconds_of_step(data: Splits, rate: float) -> float:
    model = Transformer(data.size)
    run(model, data, rate, 0, 2, TRIED)
    with clocked() as clock:
        run(model, data, rate, 0, TRIED, TRIED)
    return clock.cpu / TRIED


def run(model: Transformer, data: Splits, rate: float, seed: int, steps: int, total: int) -> None:
    batches = RandomBatches(data.train, ROWS, CONTEXT, seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.1)
    warm = max(1, total // 20)

    def factor(step: int) -> float:
        return min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / total)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
    for step in range(steps):
        inputs, targets = batches.batch(0, step)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        scheduler.step()


class TransformerPredictor:
    """Each token is foreseen from at least half a context."""

    def __init__(self, model: Transformer, start: int) -> None:
        self.model, self.start, self.size = model.eval(), start, model.tokens.num_embeddings
        self.weights, self.sizes = equal(1), [1]
        self.seen = torch.empty(0, 0, dtype=torch.long)

    def begin(self, befores: Sequence[Tensor]) -> None:
        """What stands before each row; rows with less have starts in front."""
        half = CONTEXT // 2
        self.seen = torch.full((len(befores), half), self.start)
        for row, before in zip(self.seen, befores, strict=True):
            some = before[-half:]
            row[half - len(some) :] = some

    def foresee(self, tokens: Tensor) -> Tensor:
        said = []
        for piece in tokens.split(CONTEXT // 2, 1):
            both = torch.cat([self.seen, piece], 1)
            said.append(self.model(both)[:, -piece.shape[1] :].log_softmax(-1))
            self.seen = both[:, -(CONTEXT // 2) :]
        return torch.cat(said, 1)[None]
