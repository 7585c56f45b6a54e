"""Which of the two: the compiled kernel where it can be used, the plain torch function everywhere else."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType

import torch
from torch import Tensor


def find_kernel(name: str, tensors: Sequence[Tensor], fused: bool | None) -> Callable[..., None] | None:
    """A function of `kernels.py`, or None for the plain update.

    `fused` None takes the kernel when every tensor lives on the CPU, contiguous in C order, and numba can be
    imported; False never; True raises ValueError when it cannot. The bits are the same either way.
    """
    if fused is False:
        return None
    obstacle = next(filter(None, map(reason_against, tensors)), None)
    if obstacle is None and (module := kernels()) is not None:
        function: Callable[..., None] = getattr(module, name)
        return function
    if fused:
        raise ValueError(
            f"fused=True needs numba and contiguous tensors on the CPU, got {obstacle or 'no numba'}; pass fused=None"
        )
    return None


def reason_against(tensor: Tensor) -> str | None:
    if not tensor.is_cpu:
        return f"a tensor on {tensor.device}"
    if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return f"a {type(tensor).__name__} of layout {tensor.layout}"
    return None if tensor.is_contiguous() else f"shape {tuple(tensor.shape)} with strides {tensor.stride()}"


@functools.cache
def kernels() -> ModuleType | None:
    """`kernels.py`, imported on first need: numba takes a quarter of a second."""
    try:
        from . import kernels
    except ImportError:
        return None
    return kernels
