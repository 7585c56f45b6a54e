"""Embedding rows outside the batch, moved later and all at once, with the law of the steps they
missed.

With `nn.Embedding(sparse=True)` a step touches the rows of its batch alone. A row that was left out
owes k steps of zero gradient, each θ ← aθ + sξ. Together they are one such step (see `clocks.py`):
θ shrinks by the product of the a's and receives a normal of the accumulated variance. So a step
costs what its batch costs, whatever the vocabulary, and nothing is approximated by leaving rows
out.

A row must be brought to date before it is read: `Sampler.attach(embedding)` does so ahead of each
forward pass,
`Sampler.catch_up_all` for all rows. What was not read is brought to date in the step that touches
it.

Late noise is a function of (seed, parameter, row, column, step of catching up), so the same program
gives the same bits again, resumed or not. Reading at other moments (one more validation, one more
checkpoint) gives other draws of the same law. Rows are numbered on their own: ⌈width/4⌉ counters
each, of which counter j yields the columns j, j+run, j+2·run and j+3·run of the row.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .checks import Settings
from .clocks import Clock, Move
from .cpu import launch
from .noise import LANES, ROW_STREAM, STEP_STREAM, Counter, box_muller, philox

ROWS_AT_ONCE = 4096
"""When all rows catch up, so that no temporary has the size of the embedding; 16 times as many by
kernels, which need temporaries of the height of a column only."""


class LateRows:
    """The rows of one parameter: when each was last brought to date, and the clock that says what
    it missed."""

    def __init__(
        self, theta: Tensor, memory: list[Tensor], clock: Clock, counter: Callable[..., Counter], group: Settings,
        number: int,
    ) -> None:
        self.theta, self.memory, self.clock = theta, memory, clock
        self.counter, self.group, self.number = counter, group, number
        self.seen = torch.zeros(len(theta), dtype=torch.int64, device=theta.device)

    def step(
        self, grad: Tensor, update: Callable[..., None], kernel: str, settings: Settings
    ) -> None:
        """An update, plain or by its kernel, of the rows that have a gradient."""
        if grad.sparse_dim() != 1 or grad.dense_dim() < 1:
            raise ValueError(
                f"a sparse gradient must have sparse rows and dense columns, got {grad.sparse_dim()} sparse and "
                f"{grad.dense_dim()} dense dimensions; use a dense gradient"
            )
        grad = grad.coalesce()
        rows, values, noisy = grad.indices()[0], grad.values(), settings["temperature"] > 0
        self.catch_up(rows)
        self.clock.tick(settings)
        if self.fits():
            counter = self.counter(self.group, self.number, STEP_STREAM) if noisy else None
            tensors = (flat(self.theta), rows, flat(values).to(self.theta.dtype))
            launch.update_rows(f"{kernel}_rows", (*tensors, *map(flat, self.memory)), counter, settings)
        else:
            theta, memory = self.theta[rows], [m[rows] for m in self.memory]
            update(theta, values, self.noise(rows, STEP_STREAM) if noisy else None, *memory, **settings)
            for whole, part in zip((self.theta, *self.memory), (theta, *memory), strict=True):
                whole.index_copy_(0, rows, part)
        self.seen[rows] = self.clock.now

    def catch_up(self, rows: Tensor | None = None) -> None:
        """Make up for the steps that these rows (None: all) missed."""
        rows = torch.arange(len(self.theta), device=self.theta.device) if rows is None else torch.unique(rows)
        rows = rows[self.seen[rows] < self.clock.now]
        size = 16 * ROWS_AT_ONCE if self.fits() else ROWS_AT_ONCE
        for part in rows.split(size) if len(rows) else ():
            for number, move in self.clock.moves(self.seen[part]):
                self.late(part, move, ROW_STREAM + (number << 8))
        self.seen[rows] = self.clock.now

    def late(self, rows: Tensor, move: Move, stream: int) -> None:
        """One move of rows that come late; each has noise of its own."""
        if self.fits():
            tensors, settings = move.arguments(self.theta, [flat(m) for m in self.memory])
            counter = self.counter(self.group, self.number, stream) if move.noisy else None
            launch.update_rows(move.kernel, (flat(self.theta), rows, *tensors), counter, settings)
            return
        theta = self.theta[rows]
        decay, deviation = (x.to(theta.dtype) for x in move.expand([flat(m[rows]) for m in self.memory]))
        flat(theta).mul_(decay)
        if move.noisy:
            flat(theta).add_(flat(self.noise(rows, stream)) * deviation)
        self.theta.index_copy_(0, rows, theta)

    def fits(self) -> bool:
        return launch.fits((self.theta, *self.memory), self.group["fused"])

    def noise(self, rows: Tensor, stream: int) -> Tensor:
        """Standard normals for these rows at the present step."""
        noise = row_normal(rows, flat(self.theta).shape[1], self.counter(self.group, self.number, stream))
        return noise.reshape(-1, *self.theta.shape[1:]).to(self.theta.dtype)


def flat(tensor: Tensor) -> Tensor:
    """A parameter of more than two dimensions as a matrix."""
    return tensor.flatten(1)


def row_normal(rows: Tensor, width: int, counter: Counter) -> Tensor:
    """Standard normals that depend on nothing but the counter, the row and the column; one row for
    each of `rows`."""
    seed, parameter, step, stream = counter
    run = -(-width // LANES)
    counters = rows[:, None] * run + torch.arange(run, device=rows.device)
    words = philox((counters.flatten(), parameter, step, stream), seed)
    lanes = (*box_muller(words[0], words[1]), *box_muller(words[2], words[3]))
    return torch.stack([z.view(len(rows), run) for z in lanes], dim=1).flatten(1)[:, :width]
