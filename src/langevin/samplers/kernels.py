"""Compiled CPU updates that take the place of the plain torch functions and give the same bits.

Each wrapper here does the parameters of a group in one launch. It takes jobs (the number of a parameter, then its
tensors in the order of the plain function), a noise counter without the parameter's number (None: no noise, at
temperature 0) and the settings of the plain function. Imported on first need only, because numba takes a quarter of a
second to load.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import compiled, compiled_rows, table, team
from .noise import BLOCK, MASK, Counter
from .sgnht import thermostat

Job = tuple[int, tuple[Tensor, ...]]
Stamp = tuple[int, int, int]
"""(seed, step, stream): a noise counter for all parameters."""

AT_ONCE, SERIAL = 16, 64
"""Blocks that a thread takes at a time (some 15 µs), and below which one does it all: waking another takes 30 µs."""


def normal(out: Tensor, counter: Counter) -> None:
    """Fill a tensor with `noise.normal`."""
    seed, number, step, stream = counter
    launch(compiled.normal_blocks, [(number, (out,))], (), (seed, step, stream))


def sgld(
    jobs: Sequence[Job], stamp: Stamp | None, *, lr: float, num_data: float, prior_pull: float, temperature: float
) -> None:
    """`sgld_`"""
    launch(compiled.sgld_blocks, jobs, (lr, prior_pull, math.sqrt(2 * lr * temperature / num_data)), stamp)


def psgld(
    jobs: Sequence[Job], stamp: Stamp | None, *, lr: float, num_data: float, prior_pull: float, temperature: float,
    **preconditioner: Any,
) -> None:
    """`psgld_`"""
    heat = 2 * lr * temperature / num_data
    launch(compiled.psgld_blocks, jobs, (lr, prior_pull, heat, *gain_constants(**preconditioner)), stamp)


def sghmc(
    jobs: Sequence[Job], stamp: Stamp | None, *, lr: float, num_data: float, prior_pull: float, temperature: float,
    friction: float, injected: float,
) -> None:
    """`sghmc_`"""
    scale = math.sqrt(2 * injected * lr * temperature / num_data)
    launch(compiled.sghmc_blocks, jobs, (lr, prior_pull, scale, 1 - friction), stamp)


def sgnht(
    jobs: Sequence[Job], stamp: Stamp | None, *, lr: float, num_data: float, prior_pull: float, temperature: float,
    injected: float, thermostat_rate: float,
) -> None:
    """`sgnht_`; the sum of squares is taken block by block in float64"""
    target, scale = lr * temperature / num_data, math.sqrt(2 * injected * lr * temperature / num_data)
    counts = [blocks_of(tensors[0]) if target > 0 else 0 for _, tensors in jobs]
    squares = [torch.empty(count, dtype=torch.float64) for count in counts]  # an empty one has no address
    with_squares = [(number, (*tensors, own)) for (number, tensors), own in zip(jobs, squares, strict=True)]
    launch(compiled.sgnht_blocks, with_squares, (lr, prior_pull, scale), stamp)
    for (_, (theta, *_, friction)), own in zip(jobs, squares, strict=True):
        if len(own):
            heat = float(own.numpy().sum()) / theta.numel()
            alpha = thermostat(float(friction), heat, target=target, rate=thermostat_rate)
            friction.fill_(min(max(alpha, 0.0), 1.0))


def santa(
    jobs: Sequence[Job], stamp: Stamp | None, *, lr: float, num_data: float, prior_pull: float, temperature: float,
    injected: float, thermostat_rate: float, **preconditioner: Any,
) -> None:
    """`santa_`"""
    target, heat = lr * temperature / num_data, 2 * injected * lr * temperature / num_data
    rate = thermostat_rate if target > 0 else 0.0
    constants = (lr, prior_pull, heat, *gain_constants(**preconditioner), target or 1.0, rate)
    launch(compiled.santa_blocks, jobs, constants, stamp)


def sgld_rows(
    theta: Tensor, grad: Tensor, counter: Counter | None, *, rows: Tensor, lr: float, num_data: float,
    prior_pull: float, temperature: float,
) -> None:
    """`sgld_` on some rows"""
    constants = (lr, prior_pull, math.sqrt(2 * lr * temperature / num_data))
    launch_rows(compiled_rows.sgld_rows, (theta, rows, grad.to(theta.dtype)), constants, counter)


def psgld_rows(
    theta: Tensor, grad: Tensor, counter: Counter | None, second_moment: Tensor, *, rows: Tensor, lr: float,
    num_data: float, prior_pull: float, temperature: float, **preconditioner: Any,
) -> None:
    """`psgld_` on some rows"""
    constants = (lr, prior_pull, 2 * lr * temperature / num_data, *gain_constants(**preconditioner))
    launch_rows(compiled_rows.psgld_rows, (theta, rows, grad.to(theta.dtype), second_moment), constants, counter)


def shared_rows(theta: Tensor, rows: Tensor, counter: Counter | None, decay: Tensor, deviation: Tensor) -> None:
    """`clocks.SharedMove`"""
    launch_rows(compiled_rows.shared_rows, (theta, rows, decay.to(theta.dtype), deviation.to(theta.dtype)), (), counter)


def frozen_rows(
    theta: Tensor, rows: Tensor, counter: Counter | None, second_moment: Tensor, sums: Tensor, *, prior_pull: float,
    num_data: float, tiny: float, eps: float, eps_inside: bool, ceiling: float,
) -> None:
    """`clocks.FrozenMove`"""
    constants = (prior_pull, num_data, tiny, *((eps, 0.0) if eps_inside else (0.0, eps)), ceiling)
    launch_rows(compiled_rows.frozen_rows, (theta, rows, second_moment, sums), constants, counter)


def gain_constants(
    *, preconditioner: str, beta: float, eps: float, eps_inside: bool, ceiling: float
) -> tuple[float, ...]:
    """Numbers that make one expression of the four variants of `gain_`: times 1 and plus 0 are exact."""
    decay, share = (beta, 1 - beta) if preconditioner == "rmsprop" else (1.0, 1.0)
    return (decay, share, eps, 0.0, ceiling) if eps_inside else (decay, share, 0.0, eps, ceiling)


def blocks_of(tensor: Tensor) -> int:
    return -(-tensor.numel() // BLOCK)


def launch(kernel: table.Kernel, jobs: Sequence[Job], constants: Sequence[float], stamp: Stamp | None) -> None:
    """Run a kernel over the blocks of all jobs; their tensors are contiguous, their first ones of one dtype."""
    lines, items = [], 0
    for number, tensors in jobs:
        lines.append((items, tensors[0].numel(), number, *[t.data_ptr() for t in tensors]))
        items += blocks_of(tensors[0])
    run(kernel, jobs[0][1][0], lines, constants, stamp, sizes=(items, AT_ONCE, BLOCK), parallel=items >= SERIAL)


def launch_rows(
    kernel: table.Kernel, tensors: Sequence[Tensor], constants: Sequence[float], counter: Counter | None
) -> None:
    """Run a kernel over some rows of a matrix: of the first tensor, those that the second names."""
    tensors = [t.contiguous() for t in tensors]  # holds them, too
    items, width = len(tensors[1]), tensors[0].shape[1]
    seed, number, step, stream = counter or (0, 0, 0, 0)
    line = (0, width, number, *[t.data_ptr() for t in tensors])
    sizes = (items, max(1, AT_ONCE * BLOCK // max(1, width)), width + 3)
    stamp = (seed, step, stream) if counter else None
    run(kernel, tensors[0], [line], constants, stamp, sizes=sizes, parallel=items * width >= SERIAL * BLOCK)


def run(
    kernel: table.Kernel, weights: Tensor, lines: Sequence[Sequence[int]], constants: Sequence[float],
    stamp: Stamp | None, *, sizes: tuple[int, int, int], parallel: bool,
) -> None:
    """Write the table of `table.py` and have it worked off; sizes are items, items at once and scratch."""
    words = np.zeros(table.LINES + table.LINE * len(lines) + 1, np.int64)
    words[table.ITEMS : table.SEED] = sizes
    if stamp is not None:
        seed, step, stream = stamp
        words[table.SEED : table.CONSTANTS] = (seed & MASK, seed >> 32, step & MASK, stream & MASK, 1)
    words[table.CONSTANTS : table.LINES].view(np.float64)[: len(constants)] = constants
    for place, line in zip(itertools.count(table.LINES, table.LINE), lines):
        words[place : place + len(line)] = line
    words[-1] = sizes[0]
    team.run(kernel.address(str(weights.dtype).removeprefix("torch.")), words.ctypes.data, parallel=parallel)
