"""Any model under `torch.func.vmap`, its layers on the stacked kernels.

torch has no batching rule for its LSTM, GRU and RNN, multiplies few rows by many matrices in the
slow order, and copies stacks of embeddings. Here these layers run under vmap, and fast; all else of
the model goes by torch's own rules.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .recurrent import CELLS, Recurrent, State
from .stacked import FEW_ROWS, StackedRecurrent, share


def vmappable(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode that shares the weights and runs under vmap over them; for
    inference only."""
    keep: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, keep).eval()
    for module in twin.modules():
        rule = RULES.get(type(module))  # a subclass may compute something else: it has no rule
        if rule is not None and rule.fits(module):
            module.__class__ = rule
    return twin


class _Batched(torch.autograd.Function):
    """`apply(kernel, tensors…)`: under vmap, `kernel` on the tensors with their samples on the
    first axis."""

    @staticmethod
    def forward(kernel: Callable[..., tuple[Tensor, ...]], *tensors: Tensor | None) -> tuple[Tensor, ...]:
        return tuple(part[0] for part in kernel(*(tensor if tensor is None else tensor[None] for tensor in tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing to keep: there is no backward."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, kernel: Callable[..., Any], *tensors: Tensor | None) -> Any:
        stacked = [
            tensor if tensor is None else share(tensor, info.batch_size) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip(tensors, in_dims[1:], strict=True)
        ]
        result = kernel(*stacked)
        return result, (0,) * len(result)


batched: Callable[..., Any] = _Batched.apply


class VmapLinear(nn.Linear):
    """nn.Linear; few rows as W·xᵀ, which is the faster order when there are many W."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() < 2 or x.numel() > FEW_ROWS * self.in_features:
            return F.linear(x, self.weight, self.bias)
        rows = x.reshape(-1, self.in_features)
        y = torch.matmul(self.weight, rows.mT).mT.reshape(*x.shape[:-1], self.out_features)
        return y if self.bias is None else y + self.bias

    @staticmethod
    def fits(_: nn.Module) -> bool:
        return True


class VmapEmbedding(nn.Embedding):
    """nn.Embedding by `index_select`: torch's rule copies all of a stack of matrices for every
    token. `max_norm` changes weights on the way and stays with torch."""

    def forward(self, tokens: Tensor) -> Tensor:
        return self.weight.index_select(0, tokens.flatten()).view(*tokens.shape, -1)

    @staticmethod
    def fits(module: nn.Module) -> bool:
        return isinstance(module, nn.Embedding) and module.max_norm is None


class VmapRecurrent(Recurrent):
    """The stack of this package."""

    def forward(
        self, x: Tensor, carry: list[State] | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, list[State]]:
        weights = [
            tuple(getattr(layer, name) for name in names)
            for layer in self.layers
            if isinstance(layer, nn.RNNBase)
            for names in layer._all_weights
        ]
        return run_recurrent(self.cell, len(self.layers), weights, x, carry, lengths)

    @staticmethod
    def fits(_: nn.Module) -> bool:
        return True


class VmapRNN(nn.RNNBase):
    """nn.LSTM, nn.GRU and the tanh nn.RNN with any number of layers; no projections, no packed
    sequences."""

    def forward(self, x: Tensor, hx: Any = None) -> Any:
        if not isinstance(x, Tensor) or x.dim() != 3:
            raise RuntimeError("a stacked recurrent layer takes a tensor of three axes")
        cell, ways = self.mode.removesuffix("_TANH").lower(), 2 if self.bidirectional else 1
        weights = [
            (*(getattr(self, name) for name in names), *([None] * (4 - len(names)))) for names in self._all_weights
        ]
        carry = None
        if hx is not None:
            parts = [part.unflatten(0, (-1, ways)) for part in (hx if cell == "lstm" else (hx,))]
            carry = [tuple(part[number] for part in parts) for number in range(self.num_layers)]
        out, after = run_recurrent(
            cell, self.num_layers, weights, x if self.batch_first else x.transpose(0, 1), carry, None
        )
        states = tuple(torch.cat(parts) for parts in zip(*after, strict=True))
        return out if self.batch_first else out.transpose(0, 1), states if cell == "lstm" else states[0]

    @staticmethod
    def fits(module: nn.Module) -> bool:
        return isinstance(module, nn.RNNBase) and not module.proj_size and module.mode in ("LSTM", "GRU", "RNN_TANH")


def run_recurrent(
    cell: str, layers: int, weights: Sequence[tuple[Tensor | None, ...]], x: Tensor, carry: list[State] | None,
    lengths: Tensor | None,
) -> tuple[Tensor, list[State]]:
    """One sample as its model sees it: [rows, time, inputs] → outputs, and (h, …) of each layer."""
    parts = 2 if cell == "lstm" else 1
    given = carry is not None

    def kernel(x: Tensor, lengths: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
        states = [rest[parts * n : parts * (n + 1)] for n in range(layers)] if given else None
        flat = rest[parts * layers if given else 0 :]
        ways = [flat[n : n + 4] for n in range(0, len(flat), 4)]
        each = len(ways) // layers
        stack = StackedRecurrent(cell, [ways[n : n + each] for n in range(0, len(ways), each)])
        out, after = stack(x, states, None if lengths is None else lengths[0])
        return out, *(part for state in after for part in state)

    flat = [part for state in carry or () for part in state] + [w for way in weights for w in way]
    out, *after = batched(kernel, x, lengths, *flat)
    return out, [tuple(after[parts * n : parts * (n + 1)]) for n in range(layers)]


RULES: dict[type[nn.Module], Any] = {
    nn.Linear: VmapLinear, nn.Embedding: VmapEmbedding, Recurrent: VmapRecurrent,
    **dict.fromkeys(CELLS.values(), VmapRNN),
}  # fmt: skip
