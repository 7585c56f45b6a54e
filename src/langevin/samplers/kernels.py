"""Compiled CPU updates that take the place of the plain torch functions and give the same bits.

Each wrapper here has the arguments of a plain function, with a noise counter instead of the noise (None: no noise, at
temperature 0). Imported on first need only, because numba takes a quarter of a second to load.

Threads are plain Python threads around loops that release the GIL, as many as torch has. numba's own parallel loops
would bring a second OpenMP next to torch's, or a work queue that one process may enter but once at a time, and the
choice between them is global to the process; these threads sleep while idle and are made anew after a fork.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from . import compiled
from .noise import BLOCK, MASK, Counter
from .sgnht import thermostat

Array = npt.NDArray[Any]

SERIAL_BLOCKS = 32
"""Below this one thread does it all: waking another costs some 30 µs."""
NO_SQUARES: Array = np.empty(0)

log = logging.getLogger(__name__)


def normal(out: Tensor, counter: Counter) -> None:
    """Fill a tensor with `noise.normal`."""
    launch(compiled.normal_blocks, (out,), (), counter)


def sgld(
    theta: Tensor, grad: Tensor, counter: Counter | None, *, lr: float, num_data: float, prior_pull: float,
    temperature: float,
) -> None:
    """`sgld_`"""
    launch(compiled.sgld_blocks, (theta, grad), (lr, prior_pull, math.sqrt(2 * lr * temperature / num_data)), counter)


def psgld(
    theta: Tensor, grad: Tensor, counter: Counter | None, second_moment: Tensor, *, lr: float, num_data: float,
    prior_pull: float, temperature: float, **preconditioner: Any,
) -> None:
    """`psgld_`"""
    heat = 2 * lr * temperature / num_data
    constants = (lr, prior_pull, heat, *gain_constants(**preconditioner))
    launch(compiled.psgld_blocks, (theta, grad, second_moment), constants, counter)


def sghmc(
    theta: Tensor, grad: Tensor, counter: Counter | None, momentum: Tensor, *, lr: float, num_data: float,
    prior_pull: float, temperature: float, friction: float, injected: float, squares: Array = NO_SQUARES,
) -> None:
    """`sghmc_`"""
    constants = (lr, prior_pull, math.sqrt(2 * injected * lr * temperature / num_data), 1 - friction)
    launch(compiled.sghmc_blocks, (theta, grad, momentum, squares), constants, counter)


def sgnht(
    theta: Tensor, grad: Tensor, counter: Counter | None, momentum: Tensor, friction: Tensor, *, lr: float,
    num_data: float, temperature: float, thermostat_rate: float, **settings: float,
) -> None:
    """`sgnht_`; the sum of squares is taken block by block in float64"""
    target = lr * temperature / num_data
    alpha, squares = float(friction), np.empty(-(-theta.numel() // BLOCK)) if target > 0 else NO_SQUARES
    sghmc(
        theta, grad, counter, momentum, lr=lr, num_data=num_data, temperature=temperature, friction=alpha,
        squares=squares, **settings,
    )
    if squares.size:
        heat = float(squares.sum()) / theta.numel()
        friction.fill_(min(max(thermostat(alpha, heat, target=target, rate=thermostat_rate), 0.0), 1.0))


def santa(
    theta: Tensor, grad: Tensor, counter: Counter | None, second_moment: Tensor, momentum: Tensor, friction: Tensor, *,
    lr: float, num_data: float, prior_pull: float, temperature: float, injected: float, thermostat_rate: float,
    **preconditioner: Any,
) -> None:
    """`santa_`"""
    target = lr * temperature / num_data
    heat = 2 * injected * lr * temperature / num_data
    constants = (
        lr, prior_pull, heat, *gain_constants(**preconditioner), 0.0, 0.5, target or 1.0,
        thermostat_rate if target > 0 else 0.0,
    )
    launch(compiled.santa_blocks, (theta, grad, second_moment, momentum, friction), constants, counter)


def sgld_rows(
    theta: Tensor, grad: Tensor, counter: Counter | None, *, rows: Tensor, lr: float, num_data: float,
    prior_pull: float, temperature: float,
) -> None:
    """`sgld_` on some rows"""
    constants = rounded((lr, prior_pull, math.sqrt(2 * lr * temperature / num_data)), theta)
    launch_rows(compiled.sgld_rows, theta, rows, (grad, constants), counter)


def psgld_rows(
    theta: Tensor, grad: Tensor, counter: Counter | None, second_moment: Tensor, *, rows: Tensor, lr: float,
    num_data: float, prior_pull: float, temperature: float, **preconditioner: Any,
) -> None:
    """`psgld_` on some rows"""
    constants = (lr, prior_pull, 2 * lr * temperature / num_data, *gain_constants(**preconditioner))
    launch_rows(compiled.psgld_rows, theta, rows, (grad, second_moment, rounded(constants, theta)), counter)


def shared_rows(theta: Tensor, rows: Tensor, counter: Counter | None, decay: Tensor, deviation: Tensor) -> None:
    """`clocks.SharedMove`"""
    launch_rows(compiled.shared_rows, theta, rows, (decay.to(theta.dtype), deviation.to(theta.dtype)), counter)


def frozen_rows(
    theta: Tensor, rows: Tensor, counter: Counter | None, second_moment: Tensor, sums: Tensor, *, prior_pull: float,
    num_data: float, tiny: float, eps: float, eps_inside: bool, ceiling: float,
) -> None:
    """`clocks.FrozenMove`"""
    constants = (prior_pull, num_data, tiny, *((eps, 0.0) if eps_inside else (0.0, eps)), ceiling)
    launch_rows(compiled.frozen_rows, theta, rows, (second_moment, sums, tuple(map(float, constants))), counter)


def gain_constants(
    *, preconditioner: str, beta: float, eps: float, eps_inside: bool, ceiling: float
) -> tuple[float, ...]:
    """Numbers that make one expression of the four variants of `gain_`: times 1 and plus 0 are exact."""
    decay, share = (beta, 1 - beta) if preconditioner == "rmsprop" else (1.0, 1.0)
    return (decay, share, eps, 0.0, ceiling, 1.0) if eps_inside else (decay, share, 0.0, eps, ceiling, 1.0)


def launch(
    kernel: Callable[..., None], tensors: Sequence[Tensor | Array], constants: Sequence[float],
    counter: Counter | None,
) -> None:
    """Run a kernel over the blocks of its first tensor; constants are rounded to its dtype, as torch does."""
    arrays = [t.detach().view(-1).numpy() if isinstance(t, Tensor) else t for t in tensors]
    blocks = -(-arrays[0].size // BLOCK)
    spread(kernel, (*arrays, rounded(constants, tensors[0]), key(counter)), blocks, SERIAL_BLOCKS)


def launch_rows(
    kernel: Callable[..., None], theta: Tensor, rows: Tensor, others: Sequence[Any], counter: Counter | None
) -> None:
    """Run a kernel over some rows of a matrix; of the others, tensors of two dimensions are matrices too."""
    arrays = [t.detach().numpy() if isinstance(t, Tensor) else t for t in (theta, rows, *others)]
    smallest = -(-SERIAL_BLOCKS * BLOCK // max(1, theta.shape[1]))
    spread(kernel, (*arrays, key(counter)), len(rows), smallest)


def rounded(constants: Sequence[float], like: Any) -> tuple[Any, ...]:
    """Numbers in the dtype of a tensor."""
    return tuple(np.array(constants, np.float32 if like.dtype == torch.float32 else np.float64))


def key(counter: Counter | None) -> Array:
    """Seed in two words, parameter, step, stream, and whether noise is wanted at all."""
    if counter is None:
        return np.zeros(6, np.uint32)
    seed, parameter, step, stream = counter
    return np.array((seed & MASK, seed >> 32, parameter & MASK, step & MASK, stream & MASK, 1), np.uint32)


def spread(kernel: Callable[..., None], arguments: tuple[Any, ...], items: int, smallest: int) -> None:
    """kernel(*arguments, start, stop) over all items, on as many threads as torch has, `smallest` or more at once."""
    prepare(kernel, arguments)
    threads = min(torch.get_num_threads(), items // smallest)
    if threads <= 1:
        kernel(*arguments, 0, items)
        return
    size = max(smallest, -(-items // (4 * threads)))  # in quarters, so that a core busy elsewhere does not hold up all
    starts = deque(range(0, items, size))

    def work() -> None:
        while starts:
            try:
                start = starts.popleft()
            except IndexError:  # another thread was faster
                return
            kernel(*arguments, start, min(start + size, items))

    helpers = [pool(threads - 1).submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # one that never woke up is not waited for
            helper.result()


POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}
READY: set[tuple[int, str]] = set()


def pool(workers: int) -> ThreadPoolExecutor:
    """Threads of this process; after a fork the parent's are gone and new ones are made."""
    me = (os.getpid(), workers)
    if me not in POOLS:
        POOLS[me] = ThreadPoolExecutor(workers, thread_name_prefix="langevin")
    return POOLS[me]


def prepare(kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Compile (or load) once for each dtype, on an empty range, and say so when it took time."""
    known = (id(kernel), arguments[0].dtype.char)
    if known in READY:
        return
    began, missed = time.perf_counter(), sum(kernel.stats.cache_misses.values())
    kernel(*arguments, 0, 0)
    if sum(kernel.stats.cache_misses.values()) > missed:
        log.info(
            "compiled %s for %s in %.1f s; the next process finds it in numba's cache", kernel.__name__,
            arguments[0].dtype, time.perf_counter() - began,
        )  # fmt: skip
    READY.add(known)
