"""Layers for S sets of weights at once: one batched product where a loop over samples would start S
small ones.

Weights keep torch's layout behind a first axis of samples, [S, outputs, inputs], so that a slice of
a stack is the weight of one sample without a copy. For inference only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import LangevinError
from .language_model import LanguageModel
from .recurrent import Recurrent, State

Direction = tuple[Tensor | None, ...]
"""Stacked weights of one direction of one layer: torch's weight_ih, weight_hh, bias_ih, bias_hh
(None is zero)."""

FEW_ROWS = 8
"""Up to here `product` takes W·xᵀ, beyond x·Wᵀ. One thread, AVX2: [20, 512, 128] by one row 0.16
against 0.69 ms, [20, 10000, 200] by one row 7.4 against 26 ms, [20, 2048, 512] by five rows 9
against 14 ms, by twenty 77 against 59."""


def share(x: Tensor, samples: int) -> Tensor:
    """[…] → [S, …], the same numbers for every sample and no copy of them."""
    return x.expand(samples, *x.shape)


def on_tensors(change: Callable[..., Tensor], tree: Any, *others: Any) -> Any:
    """The same nest of tuples, lists and dicts with every tensor changed; tensors at the same place
    go together."""
    if isinstance(tree, Tensor):
        return change(tree, *others)
    if isinstance(tree, dict):
        return {key: on_tensors(change, tree[key], *(other[key] for other in others)) for key in tree}
    if isinstance(tree, (tuple, list)):
        parts = [on_tensors(change, *together) for together in zip(tree, *others, strict=True)]
        named = hasattr(tree, "_fields")  # a namedtuple takes its fields one by one
        return type(tree)(*parts) if named else type(tree)(parts)
    return tree


def reorder(carry: Any, rows: Tensor) -> Any:
    """The state with its rows taken in another order, some twice, some not at all: the step of a
    beam search."""
    return on_tensors(lambda part: part.index_select(-2, rows), carry)


def product(x: Tensor, w: Tensor, add: Tensor | None = None) -> Tensor:
    """x·Wᵀ + add for each sample: [S, rows, inputs] and [S, outputs, inputs] → [S, rows, outputs].

    Rows must lie one behind the other in memory: columns of a few numbers make the same product 3
    to 5 times slower.
    """
    x = x.contiguous()
    if x.shape[1] > FEW_ROWS:
        return torch.bmm(x, w.mT) if add is None else torch.baddbmm(add, x, w.mT)
    return torch.bmm(w, x.mT).mT if add is None else torch.baddbmm(add.mT, w, x.mT).mT


class StackedLinear:
    """y_s = W_s x_s + b_s for all s; weight [S, outputs, inputs], bias [S, outputs]."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight, self.bias = weight, None if bias is None else bias[:, None]

    def __call__(self, x: Tensor) -> Tensor:
        """[S, …, inputs] → [S, …, outputs]; what `share` made is multiplied by all samples in one
        product."""
        samples, outputs, inputs = self.weight.shape
        if x.dim() < 2 or len(x) != samples or x.shape[-1] != inputs:
            raise LangevinError(f"expected [{samples}, …, {inputs}], got {tuple(x.shape)}; use share(x, S) to share x")
        if x.stride(0) == 0 and samples > 1:
            y = F.linear(x[0].reshape(-1, inputs), self.weight.view(-1, inputs)).view(-1, samples, outputs)
            y = y.transpose(0, 1) if self.bias is None else y.transpose(0, 1) + self.bias
        else:
            y = product(x.reshape(samples, -1, inputs), self.weight, self.bias)
        return y.reshape(*x.shape[:-1], outputs)


class StackedEmbedding:
    """Rows of S embedding matrices; weight [S, types, features]."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    def __call__(self, tokens: Tensor) -> Tensor:
        """Tokens [rows, time] or [rows] shared by all samples, or [S, rows, time] of each → one
        more axis, features."""
        samples, types, features = self.weight.shape
        if tokens.dim() < 3:
            return self.weight.index_select(1, tokens.flatten()).view(samples, *tokens.shape, features)
        if tokens.dim() != 3 or len(tokens) != samples:
            raise LangevinError(f"expected tokens [rows, time] or [{samples}, rows, time], got {tuple(tokens.shape)}")
        first = torch.arange(samples, device=tokens.device)[:, None, None] * types
        return F.embedding(tokens + first, self.weight.view(-1, features))


class StackedRecurrent:
    """LSTM, GRU or tanh RNN layers, one way or both; `layers[number][direction]` holds stacked
    weights."""

    def __init__(self, cell: str, layers: Sequence[Sequence[Direction]]) -> None:
        if cell not in STEPS:
            raise LangevinError(f"cell must be one of {', '.join(STEPS)}, got {cell!r}")
        self.cell, self.layers = cell, [[with_biases(cell, *way) for way in layer] for layer in layers]
        self.samples, _, self.hidden = self.layers[0][0][1].shape

    def __call__(
        self, x: Tensor, carry: Sequence[State] | None = None, lengths: Tensor | None = None, *,
        multiplied: bool = False,
    ) -> tuple[Tensor, list[State]]:
        """[S, rows, time, inputs] → [S, rows, time, outputs] and each layer's state, [S,
        directions, rows, hidden].

        With `lengths` [rows] a row ends there: outputs behind its end are zero, its state is that
        at its end, and the backward direction begins at its end, so that a padded row gives what it
        gives alone. `multiplied`: x is already W·x + b of the first layer, forward direction, and
        is not multiplied again.
        """
        if x.dim() != 4 or len(x) != self.samples:
            raise LangevinError(f"expected [S, rows, time, inputs] with S = {self.samples}, got {tuple(x.shape)}")
        alive = None
        if lengths is not None:
            alive = (torch.arange(x.shape[2], device=x.device)[:, None] < lengths.to(x.device))[..., None]
        x, after = x.transpose(1, 2), []
        inputs = x
        for number, layer in enumerate(self.layers):
            ways = []
            for direction, weights in enumerate(layer):
                state = tuple(part[:, direction] for part in carry[number]) if carry is not None else self.zero(x)
                if not (multiplied and number == 0):
                    w, _, b, _ = weights
                    inputs = product(x.flatten(1, 2), w, b).view(*x.shape[:3], -1)
                ways.append(self.run(weights, inputs, state, alive, backward=direction == 1))
            x = torch.cat([out for out, _ in ways], -1) if len(ways) > 1 else ways[0][0]
            after.append(tuple(torch.stack(parts, 1) for parts in zip(*(state for _, state in ways), strict=True)))
        return x.transpose(1, 2), after

    @classmethod
    def of(cls, stack: Recurrent, weights: Mapping[str, Tensor], prefix: str) -> StackedRecurrent:
        """The layers of a `Recurrent` whose stacked weights have these names behind the prefix."""
        names = [layer._all_weights for layer in stack.layers if isinstance(layer, nn.RNNBase)]
        layers = [
            [tuple(weights[f"{prefix}layers.{number}.{name}"] for name in way) for way in ways]
            for number, ways in enumerate(names)
        ]
        return cls(stack.cell, layers)

    def zero(self, x: Tensor) -> State:
        """Where an LSTM or another cell begins."""
        zero = x.new_zeros(self.samples, x.shape[2], self.hidden)
        return (zero, zero) if self.cell == "lstm" else (zero,)

    def run(
        self, weights: tuple[Tensor, ...], inputs: Tensor, state: State, alive: Tensor | None, *, backward: bool
    ) -> tuple[Tensor, State]:
        """One direction of one layer: [S, time, rows, gates] → [S, time, rows, hidden] and the last
        state.

        `alive` [time, rows, 1] says where a row has not ended: elsewhere its state stands still.
        """
        _, u, _, c = weights
        time = inputs.shape[1]
        step, out = STEPS[self.cell], [inputs] * time
        for t in reversed(range(time)) if backward else range(time):
            after = step(inputs[:, t], u, c, state)
            if alive is not None:
                state = tuple(torch.where(alive[t], new, old) for new, old in zip(after, state, strict=True))
                # not a product: padding may hold anything
                out[t] = torch.where(alive[t], after[0], 0.0)
            else:
                state, out[t] = after, after[0]
        return torch.stack(out, 1), state


class StackedLanguageModel:
    """`LanguageModel` for S samples: tokens [rows, time] → logits [S, rows, time, vocabulary] and
    the state of each.

    With no more types than features, what the first layer makes of each type is a table not larger
    than the weights that it saves to read: a quarter of the memory traffic of a step of two layers.
    """

    def __init__(self, model: LanguageModel, weights: Mapping[str, Tensor]) -> None:
        self.embedding = StackedEmbedding(weights["embedding.weight"])
        self.recurrent = StackedRecurrent.of(model.recurrent, weights, "recurrent.")
        self.output = StackedLinear(weights["output.weight"], weights["output.bias"])
        _, types, features = self.embedding.weight.shape
        self.is_table = types <= features
        if self.is_table:
            w, _, b, _ = self.recurrent.layers[0][0]
            self.embedding = StackedEmbedding(product(self.embedding.weight, w, b))

    def forward(self, tokens: Tensor, carry: list[State] | None = None) -> tuple[Tensor, list[State]]:
        hidden, carry = self.recurrent(self.embedding(tokens), carry, multiplied=self.is_table)
        return self.output(hidden), carry


def with_biases(
    cell: str, w: Tensor | None, u: Tensor | None, b: Tensor | None, c: Tensor | None
) -> tuple[Tensor, ...]:
    """Biases as [S, 1, gates]; for LSTM and RNN the two of torch act as one and are added here,
    once."""
    assert w is not None
    assert u is not None
    if b is None or c is None:
        b = c = w.new_zeros(w.shape[:2])
    return (w, u, b[:, None], c[:, None]) if cell == "gru" else (w, u, (b + c)[:, None], c[:, None])


def lstm_step(inputs: Tensor, u: Tensor, _: Tensor, state: State) -> State:
    """c' = f·c + i·g, h' = o·tanh c'."""
    h, c = state
    i, f, g, o = product(h, u, inputs).chunk(4, -1)
    c = torch.addcmul(f.sigmoid() * c, i.sigmoid(), g.tanh())
    return o.sigmoid() * c.tanh(), c


def gru_step(inputs: Tensor, u: Tensor, bias: Tensor, state: State) -> State:
    """h' = n + z·(h − n), n = tanh(n_x + r·n_h)."""
    (h,) = state
    (ri, zi, ni), (rh, zh, nh) = inputs.chunk(3, -1), product(h, u, bias).chunk(3, -1)
    n = torch.addcmul(ni, (ri + rh).sigmoid(), nh).tanh()
    return (torch.lerp(n, h, (zi + zh).sigmoid()),)


def rnn_step(inputs: Tensor, u: Tensor, _: Tensor, state: State) -> State:
    """h' = tanh(W x + U h + b)."""
    return (product(state[0], u, inputs).tanh(),)


STEPS: dict[str, Callable[[Tensor, Tensor, Tensor, State], State]] = {
    "lstm": lstm_step, "gru": gru_step, "rnn": rnn_step,
}  # fmt: skip
