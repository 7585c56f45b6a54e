"""Which of the two: the compiled kernel where it can be used, the plain torch function everywhere else."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType

import torch
from torch import Tensor

from . import team  # noqa: F401  (early, as it must hear of forks)


def find_kernel(name: str, tensors: Sequence[Tensor], fused: bool | None) -> Callable[..., None] | None:
    """A function of `kernels.py`, or None for the plain update.

    The tensors are the weights, then their states. `fused` None takes the kernel when every one lives on the CPU,
    contiguous in C order, and numba can be imported; False never; True raises ValueError when it cannot. The bits are
    the same either way.
    """
    if fused is False:
        return None
    obstacle = next((reason for t in tensors if (reason := reason_against(t, tensors[0]))), None)
    if obstacle is None and (module := kernels()) is not None:
        function: Callable[..., None] = getattr(module, name)
        return function
    if fused:
        raise ValueError(
            f"fused=True needs numba and contiguous tensors on the CPU, got {obstacle or 'no numba'}; pass fused=None"
        )
    return None


def reason_against(tensor: Tensor, weights: Tensor) -> str | None:
    """Kernels go by addresses: what they are given must be laid out as they expect."""
    if not tensor.is_cpu:
        return f"a tensor on {tensor.device}"
    if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return f"a {type(tensor).__name__} of layout {tensor.layout}"
    if tensor.dtype is not weights.dtype or tensor.shape not in (weights.shape, ()):
        return f"{tensor.dtype} {tuple(tensor.shape)} beside weights of {weights.dtype} {tuple(weights.shape)}"
    return None if tensor.is_contiguous() else f"shape {tuple(tensor.shape)} with strides {tensor.stride()}"


@functools.cache
def kernels() -> ModuleType | None:
    """`kernels.py`, imported on first need: numba takes a quarter of a second."""
    try:
        from . import kernels
    except ImportError:
        return None
    return kernels
