"""A stack of recurrent layers on torch's fused LSTM, GRU and RNN kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from .dropout import Dropout, keep_mask

CELLS: dict[str, type[nn.LSTM] | type[nn.GRU] | type[nn.RNN]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}

State = tuple[Tensor, ...]
"""What one layer carries from batch to batch: (h, c) for an LSTM, (h,) for the others."""


@cache
def kernels_take_bfloat16() -> bool:
    """Whether torch's recurrent kernels know bfloat16 on this processor; without AVX-512 the LSTM's
    fails in training, and float32 takes its place."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class Recurrent(nn.Module):
    """Layers of one kind of cell, batch first, each a one-layer torch module so that anything may
    sit in between.

    torch adds two biases to each gate. For LSTM and RNN they act as one, and a Gaussian prior on
    both would have twice the intended variance: the second stays at zero, frozen. A GRU needs both.
    """

    def __init__(
        self, cell: str, inputs: int, hidden: int, layers: int, *, bidirectional: bool = False, dropout: float = 0.0,
        dropout_kind: str = "naive",
    ) -> None:
        super().__init__()
        width = hidden * (2 if bidirectional else 1)
        sizes = [inputs] + [width] * (layers - 1)
        self.layers = nn.ModuleList(
            CELLS[cell](size, hidden, batch_first=True, bidirectional=bidirectional) for size in sizes
        )
        self.between = Dropout(dropout, dropout_kind)
        self.recurrent_rate = dropout if dropout_kind == "gal" else 0.0
        self.cell, self.outputs = cell, width
        if cell != "gru":
            for name, weight in self.named_parameters():
                if "bias_hh" in name:
                    nn.init.zeros_(weight)
                    weight.requires_grad_(False)

    def forward(
        self, x: Tensor, carry: list[State] | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, list[State]]:
        """[rows, time, inputs] and the carried state of each layer → [rows, time, outputs] and the
        new state.

        With `lengths`, rows are padded beyond theirs; padding changes nothing within them, and the
        state of a layer is (h,), [directions, rows, hidden], after the last step of each row that
        counts (zero for a row of none).
        """
        if carry is not None and lengths is not None:
            raise LangevinError("expected either a carried state or lengths, got both; padded rows start from zero")
        after: list[State] = []
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.RNNBase)
            if number:
                x = self.between(x)
            if lengths is None:
                x, state = self.run_layer(layer, x, carry[number] if carry else None)
            else:
                x, state = self.run_padded(layer, x, lengths)
            after.append(state)
        return x, after

    def weights_of(self, layer: nn.RNNBase) -> list[Tensor]:
        """Four for each direction: input, recurrent, and their biases."""
        return [getattr(layer, name) for names in layer._all_weights for name in names]

    def run_padded(self, layer: nn.RNNBase, x: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        """One layer over padded rows, each direction forward in time, the second over rows turned
        round.

        So padding always comes last, where it cannot reach what counts, and both run on the fused
        kernel, which packed sequences would leave.
        """
        weights = self.weights_of(layer)
        outputs, states = [], []
        last, held = (lengths - 1).clamp(min=0), (lengths > 0)[:, None]
        for way in range(2 if layer.bidirectional else 1):
            turned = reverse_rows(x, lengths) if way else x
            zero = x.new_zeros(1, len(x), layer.hidden_size)
            before = (zero, zero) if self.cell == "lstm" else (zero,)
            out, _ = self.run_kernel(turned, before, weights[4 * way : 4 * way + 4], bidirectional=False)
            states.append(out[torch.arange(len(x), device=x.device), last] * held)
            outputs.append(reverse_rows(out, lengths) if way else out)
        return torch.cat(outputs, -1), (torch.stack(states),)

    def run_layer(self, layer: nn.RNNBase, x: Tensor, before: State | None) -> tuple[Tensor, State]:
        """One layer of rows that all count to their end."""
        weights = self.weights_of(layer)
        directions = 2 if layer.bidirectional else 1
        if before is None:
            zero = x.new_zeros(directions, len(x), layer.hidden_size)
            before = (zero, zero) if self.cell == "lstm" else (zero,)
        return self.run_kernel(x, before, weights, bidirectional=layer.bidirectional)

    def run_kernel(
        self, x: Tensor, before: State, weights: list[Tensor], *, bidirectional: bool
    ) -> tuple[Tensor, State]:
        """torch's fused kernel, unless a mask must act between two steps."""
        if self.training and self.recurrent_rate:
            ways = [
                unroll(self.cell, x if way == 0 else x.flip(1), tuple(s[way] for s in before),
                       weights[4 * way : 4 * way + 4], self.recurrent_rate)
                for way in range(2 if bidirectional else 1)
            ]
            outputs = [ways[0][0], *(out.flip(1) for out, _ in ways[1:])]
            states = zip(*(state for _, state in ways), strict=True)
            return torch.cat(outputs, -1), tuple(torch.stack(parts) for parts in states)
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and not kernels_take_bfloat16():
            with torch.autocast("cpu", enabled=False):
                single = tuple(state.float() for state in before)
                return self.run_kernel(x.float(), single, weights, bidirectional=bidirectional)
        options = (True, 1, 0.0, self.training, bidirectional, True)
        if self.cell == "lstm":
            x, h, c = torch.lstm(x, before, weights, *options)
            return x, (h, c)
        kernel = torch.gru if self.cell == "gru" else torch.rnn_tanh
        x, h = kernel(x, before[0], weights, *options)
        return x, (h,)


class Permuted(torch.autograd.Function):
    """x[order] for an order that is its own inverse: its gradient is permuted the same way, without
    a scatter."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (order,) = ctx.saved_tensors
        return grad.contiguous().index_select(0, order), None


def reverse_rows(x: Tensor, lengths: Tensor) -> Tensor:
    """Each row of [rows, time, units] turned round within its length; what is beyond stays."""
    time = torch.arange(x.shape[1], device=x.device)[None]
    turned = torch.where(time < lengths[:, None], lengths[:, None] - 1 - time, time)
    order = (turned + torch.arange(len(x), device=x.device)[:, None] * x.shape[1]).flatten()
    permuted: Tensor = Permuted.apply(x.flatten(0, 1), order)  # type: ignore[no-untyped-call]  # torch's
    return permuted.view_as(x)


def unroll(cell: str, x: Tensor, state: State, weights: list[Tensor], rate: float) -> tuple[Tensor, State]:
    """One direction of one layer step by step, with Gal's mask on the recurrent connection,
    constant in time."""
    w, u, b, c = weights
    mask = keep_mask(state[0], rate)
    inputs, out = nn.functional.linear(x, w, b), []
    for now in inputs.unbind(1):
        state = step(cell, now, nn.functional.linear(state[0] * mask, u, c), state)
        out.append(state[0])
    return torch.stack(out, 1), state


def step(cell: str, inputs: Tensor, recurrent: Tensor, state: State) -> State:
    """The equations of the cells, in torch's order of gates."""
    if cell == "lstm":
        i, f, g, o = (inputs + recurrent).chunk(4, -1)
        memory = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * memory.tanh(), memory
    if cell == "gru":
        (ri, zi, ni), (rh, zh, nh) = inputs.chunk(3, -1), recurrent.chunk(3, -1)
        z = (zi + zh).sigmoid()
        return ((1 - z) * (ni + (ri + rh).sigmoid() * nh).tanh() + z * state[0],)
    return ((inputs + recurrent).tanh(),)


def detach(carry: list[State]) -> list[State]:
    """The same numbers without their history: back-propagation stops at the border between two
    batches."""
    return [tuple(tensor.detach() for tensor in state) for state in carry]
