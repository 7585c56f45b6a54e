"""Which of the two, the compiled kernel or the plain torch function; and the kernel's way to its
work: all parameters of a group in one launch.

numba is imported on first need, because it takes a quarter of a second to load.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..checks import Settings
from ..noise import BLOCK, Counter
from ..prior import prior_pull
from ..thermostat import thermostat_
from . import threads  # early, as it must hear of forks

Job = tuple[int, tuple[Tensor, ...], Tensor | None]
"""Number of a parameter; it, its gradient and its state, as the plain function takes them; the mean
of its prior, if it has one."""
NoiseKey = tuple[int, int, int]
"""(seed, step, stream): a noise counter for all parameters."""

AT_ONCE, SERIAL = 16, 64
"""Blocks that a thread takes at a time (some 15 µs), and below which one does it all: waking
another takes 30 µs."""


def fits(tensors: Sequence[Tensor], fused: bool | None) -> bool:
    """Whether the kernel takes these: the weights, then what belongs to them.

    `fused` None says yes when every one lives on the CPU, contiguous in C order, and numba can be
    imported; False never; True raises ValueError when it cannot be. The bits are the same.
    """
    if fused is False:
        return False
    reason = next((reason for t in tensors if (reason := obstacle(t, tensors[0]))), None)
    if reason is None and has_numba():
        return True
    if fused:
        raise ValueError(
            "fused=True needs numba and contiguous tensors on the CPU, got "
            f"{reason or 'no numba'}; pass fused=None"
        )
    return False


def obstacle(tensor: Tensor, weights: Tensor) -> str | None:
    """Kernels go by addresses: what they are given must be laid out as they expect."""
    if not tensor.is_cpu:
        return f"a tensor on {tensor.device}"
    if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return f"a {type(tensor).__name__} of layout {tensor.layout}"
    if tensor.dtype is not weights.dtype or tensor.shape not in (weights.shape, ()):
        return (
            f"{tensor.dtype} {tuple(tensor.shape)} beside weights of {weights.dtype} "
            f"{tuple(weights.shape)}"
        )
    if tensor.is_contiguous():
        return None
    return f"shape {tuple(tensor.shape)} with strides {tensor.stride()}"


@functools.cache
def has_numba() -> bool:
    try:
        from . import table  # noqa: F401  (it imports numba)
    except ImportError:
        return False
    return True


@functools.cache
def address(name: str, dtype: torch.dtype) -> int:
    """Of the compiled function of this name for weights of this dtype."""
    from . import kernels, rows

    kernel = getattr(rows if name.endswith("_rows") else kernels, name)
    return int(kernel.address(str(dtype).removeprefix("torch.")))


def pull(s: Settings) -> float:
    return prior_pull(s["num_data"], s["prior_var"])


def heat(s: Settings) -> float:
    """2A·lr·T/N: the variance of the noise where G = 1."""
    return float(2 * s.get("injected", 1.0) * s["lr"] * s["temperature"] / s["num_data"])


def target(s: Settings) -> float:
    """lr·T/N: the mean square of a momentum."""
    return float(s["lr"] * s["temperature"] / s["num_data"])


def epsilons(s: Settings) -> tuple[float, float]:
    """Under the root and outside; plus 0 is exact."""
    return (s["eps"], 0.0) if s["eps_inside"] else (0.0, s["eps"])


def gain_constants(s: Settings) -> tuple[float, ...]:
    """Numbers that make one expression of the four variants of `gain_`; times 1 is exact."""
    beta, rmsprop = s["beta"], s["preconditioner"] == "rmsprop"
    return (*((beta, 1 - beta) if rmsprop else (1.0, 1.0)), *epsilons(s), s["ceiling"])


CONSTANTS: dict[str, Callable[[Settings], tuple[float, ...]]] = {
    "normal": lambda s: (),
    "sgld": lambda s: (s["lr"], pull(s), math.sqrt(heat(s))),
    "psgld": lambda s: (s["lr"], pull(s), heat(s), *gain_constants(s)),
    "sghmc": lambda s: (s["lr"], pull(s), math.sqrt(heat(s)), 1 - s["friction"]),
    "sgnht": lambda s: (s["lr"], pull(s), math.sqrt(heat(s))),
    "santa": lambda s: (
        s["lr"], pull(s), heat(s), *gain_constants(s), target(s) or 1.0,
        s["thermostat_rate"] if target(s) > 0 else 0.0,
    ),
    "sgld_rows": lambda s: CONSTANTS["sgld"](s),
    "psgld_rows": lambda s: CONSTANTS["psgld"](s),
    "shared_rows": lambda s: (),
    "frozen_rows": lambda s: (pull(s), s["num_data"], s["tiny"], *epsilons(s), s["ceiling"]),
}  # fmt: skip
"""What each kernel reads: numbers made of the settings of the plain function."""


def update(name: str, jobs: Sequence[Job], key: NoiseKey | None, settings: Settings) -> None:
    """Run a kernel over the blocks of all jobs; their tensors are contiguous, their weights of one
    dtype, and all have a mean or none has. No key: no noise, at temperature 0.
    """
    from . import table

    sums = squares(jobs, settings) if name == "sgnht" else []
    lines, items = [], 0
    for place, (number, tensors, mean) in enumerate(jobs):
        line = [items, tensors[0].numel(), number, *[t.data_ptr() for t in tensors]]
        if sums:
            line.append(sums[place].data_ptr())
        if mean is not None:
            line += [0] * (table.LINE - 1 - len(line)) + [mean.data_ptr()]
        lines.append(line)
        items += block_count(tensors[0])
    weights = [tensors[0] for _, tensors, _ in jobs]
    words = table.write((items, AT_ONCE, BLOCK), lines, CONSTANTS[name](settings), key)
    kernel = f"{name}_blocks" if jobs[0][2] is None else f"{name}_mean_blocks"
    threads.run_kernel(address(kernel, weights[0].dtype), words.ctypes.data, parallel=items >= SERIAL)
    torch.autograd.graph.increment_version(weights)  # written behind torch's back
    if sums and (goal := target(settings)) > 0:
        rate = settings["thermostat_rate"]
        for (_, tensors, _), total in zip(jobs, sums, strict=True):
            if size := tensors[0].numel():
                heat = float(total.numpy().sum()) / size
                thermostat_(tensors[-1], heat, target=goal, rate=rate)


def squares(jobs: Sequence[Job], settings: Settings) -> list[Tensor]:
    """Room for the sum of m² of each block, in float64; where there is none, none are taken."""
    warm = target(settings) > 0
    counts = [block_count(tensors[0]) if warm else 0 for _, tensors, _ in jobs]
    return [torch.empty(count, dtype=torch.float64) for count in counts]  # empty: no address


def block_count(tensor: Tensor) -> int:
    return -(-tensor.numel() // BLOCK)


def update_rows(
    name: str, tensors: Sequence[Tensor], counter: Counter | None, settings: Settings
) -> None:
    """Run a kernel over some rows of a matrix: of the first tensor, those that the second names."""
    from . import table

    tensors = [t.contiguous() for t in tensors]  # holds them, too
    items, width = len(tensors[1]), tensors[0].shape[1]
    seed, number, step, stream = counter or (0, 0, 0, 0)
    line = [0, width, number, *[t.data_ptr() for t in tensors]]
    sizes = (items, max(1, AT_ONCE * BLOCK // max(1, width)), width + 3)
    key = (seed, step, stream) if counter else None
    words = table.write(sizes, [line], CONSTANTS[name](settings), key)
    parallel = items * width >= SERIAL * BLOCK
    threads.run_kernel(address(name, tensors[0].dtype), words.ctypes.data, parallel=parallel)
    torch.autograd.graph.increment_version(tensors[0])


def fill_normal(out: Tensor, counter: Counter) -> None:
    """Fill a tensor with `noise.normal`."""
    seed, number, step, stream = counter
    update("normal", [(number, (out,), None)], (seed, step, stream), {})
