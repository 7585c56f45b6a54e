"""The likelihood of one class among many: mean −log softmax, and its gradient, in one pass over the
logits.

With a vocabulary of 10,000 words the logits of a batch are tens of megabytes, and what a training
step spends on them beside the matrix products is moving them to and from memory: torch takes five
passes (log-softmax, picking, zeros, scattering, log-softmax backwards). The gradient, softmax −
target, is known as soon as the loss is, so both are computed row by row while a row is in the
cache. `docs/speed.md` has what that gains.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

KERNELS = {torch.float32: ("float_rows", "float32"), torch.bfloat16: ("bfloat16_rows", "uint16")}
AT_ONCE, WORTH = 8, 2**17
"""Rows that a thread takes at a time, and logits below which torch's own is taken: a launch has its
price, too. (2000 rows of 87 letters are level, 10,000 of them 1.7 times faster.)"""


def cross_entropy(logits: Tensor, targets: Tensor, share: float = 1.0) -> Tensor:
    """`share` times the mean of −log softmax(logits)[target] over the rows; logits are [rows,
    classes].

    The same as torch's function of this name, to rounding; that is taken wherever there is no
    compiled loop (other devices and dtypes) or nothing to be gained by one.
    """
    kernel = logits.dtype in KERNELS and logits.device.type == "cpu" and logits.numel() >= WORTH
    if not kernel:
        return F.cross_entropy(logits, targets) * share
    loss: Tensor = MeanCrossEntropy.apply(logits, targets, share)  # type: ignore[no-untyped-call]  # torch's
    return loss


class MeanCrossEntropy(torch.autograd.Function):
    """The loss; its gradient is made along with it."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, share: float) -> Tensor:
        losses, grad = rows(logits.contiguous(), targets.contiguous(), share / len(logits))
        ctx.save_for_backward(grad)
        return losses.mean() * share

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        (grad,) = ctx.saved_tensors
        return grad if outer.item() == 1 else grad * outer.to(grad.dtype), None, None


def rows(logits: Tensor, targets: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """−log p of each target, and the gradient of their sum times `scale` with respect to the
    logits."""
    from ..samplers.cpu import table, threads  # numba takes a quarter of a second to load
    from . import softmax_kernel as compiled_softmax

    count, width = logits.shape
    if not 0 <= (worst := int(targets.max() if targets.min() >= 0 else targets.min())) < width:
        # memory beyond is not ours
        raise IndexError(f"expected classes from 0 to {width - 1}, got {worst}")
    losses, grad = torch.empty(count, dtype=torch.float32), torch.empty_like(logits)
    name, dtype = KERNELS[logits.dtype]
    line = (0, width, 0, *[t.data_ptr() for t in (logits, grad, targets, losses)])
    words = table.write((count, AT_ONCE, width), [line], (scale,))
    threads.run_kernel(getattr(compiled_softmax, name).address(dtype), words.ctypes.data, parallel=True)
    return losses, grad
