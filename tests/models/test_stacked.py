"""Stacked layers equal a loop over torch's own layers with the same weights."""

from operator import itemgetter

import pytest
import torch
from torch import nn

from langevin.errors import LangevinError
from langevin.models.recurrent import CELLS
from langevin.models.stacked import (
    StackedEmbedding,
    StackedLinear,
    StackedRecurrent,
    on_tensors,
    reorder,
    share,
)

S = 3


def members(cell, inputs, hidden, layers, bidirectional, *, bias=True):
    return [
        CELLS[cell](inputs, hidden, layers, batch_first=True, bidirectional=bidirectional, bias=bias) for _ in range(S)
    ]


def stack(cell, modules):
    layers = modules[0].num_layers
    names = modules[0]._all_weights
    ways = [tuple(torch.stack([getattr(m, name).detach() for m in modules]) for name in way) for way in names]
    ways = [(*way, *[None] * (4 - len(way))) for way in ways]
    each = len(ways) // layers
    return StackedRecurrent(cell, [ways[n * each : (n + 1) * each] for n in range(layers)])


def states_of(cell, state, layers):
    """torch's state of one sample, layers and directions on one axis → ours."""
    parts = [part.unflatten(0, (layers, -1)) for part in (state if cell == "lstm" else (state,))]
    return [tuple(part[number] for part in parts) for number in range(layers)]


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(
    ("inputs", "hidden", "rows", "time"), [(1, 1, 1, 1), (5, 7, 1, 4), (7, 3, 3, 1), (4, 13, 17, 5)]
)
@torch.no_grad()
def test_recurrent_equals_the_loop(cell, layers, bidirectional, inputs, hidden, rows, time):
    torch.manual_seed(0)
    modules = members(cell, inputs, hidden, layers, bidirectional)
    x = torch.randn(S, rows, time, inputs)
    out, after = stack(cell, modules)(x)
    again, last = stack(cell, modules)(x, after)
    for s, module in enumerate(modules):
        expected, state = module(x[s])
        torch.testing.assert_close(out[s], expected, rtol=0, atol=1e-5)
        torch.testing.assert_close(on_tensors(itemgetter(s), after), states_of(cell, state, layers), rtol=0, atol=1e-5)
        expected, state = module(x[s], state)
        torch.testing.assert_close(again[s], expected, rtol=0, atol=1e-5)
        torch.testing.assert_close(on_tensors(itemgetter(s), last), states_of(cell, state, layers), rtol=0, atol=1e-5)


@pytest.mark.parametrize("cell", list(CELLS))
@torch.no_grad()
def test_no_bias(cell):
    modules = members(cell, 4, 5, 2, True, bias=False)
    x = torch.randn(S, 2, 3, 4)
    for s, module in enumerate(modules):
        torch.testing.assert_close(stack(cell, modules)(x)[0][s], module(x[s])[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("cell", list(CELLS))
@torch.no_grad()
def test_two_halves_equal_one_long_pass(cell):
    stacked = stack(cell, members(cell, 4, 6, 2, False))
    x = torch.randn(S, 5, 9, 4)
    whole, end = stacked(x)
    first, carry = stacked(x[:, :, :4])
    second, after = stacked(x[:, :, 4:], carry)
    torch.testing.assert_close(torch.cat([first, second], 2), whole, rtol=0, atol=1e-6)
    torch.testing.assert_close(after, end, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("bidirectional", [False, True])
@torch.no_grad()
def test_a_padded_row_gives_what_it_gives_alone(cell, bidirectional):
    """Whatever stands in the padding, even NaN."""
    stacked = stack(cell, members(cell, 4, 6, 2, bidirectional))
    x, lengths = torch.randn(S, 4, 7, 4), torch.tensor([7, 1, 4, 0])
    x[:, torch.arange(7) >= lengths[:, None]] = float("nan")
    begin = [tuple(torch.randn_like(part) for part in state) for state in stacked(torch.zeros(S, 4, 1, 4))[1]]
    for carry in (None, begin):
        out, after = stacked(x, carry, lengths)
        for row, length in enumerate(lengths.tolist()):
            mine = itemgetter((slice(None), slice(None), slice(row, row + 1)))
            own = None if carry is None else on_tensors(mine, carry)
            assert not out[:, row, length:].any()
            if length:
                alone, state = stacked(x[:, row : row + 1, :length], own)
                torch.testing.assert_close(out[:, row : row + 1, :length], alone, rtol=0, atol=1e-6)
            else:
                state = own or on_tensors(lambda t: torch.zeros_like(t[:, :, :1]), after)
            torch.testing.assert_close(on_tensors(mine, after), state, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("middle", [(), (1,), (3,), (25,), (2, 5), (4, 1, 6)])
@torch.no_grad()
def test_linear(bias, middle):
    layers = [nn.Linear(5, 9, bias=bias) for _ in range(S)]
    stacked = StackedLinear(
        torch.stack([m.weight for m in layers]), torch.stack([m.bias for m in layers]) if bias else None
    )
    x, one = torch.randn(S, *middle, 5), torch.randn(*middle, 5)
    for s, layer in enumerate(layers):
        torch.testing.assert_close(stacked(x)[s], layer(x[s]), rtol=0, atol=1e-5)
        torch.testing.assert_close(stacked(share(one, S))[s], layer(one), rtol=0, atol=1e-5)


@torch.no_grad()
def test_embedding_of_shared_tokens_and_of_tokens_of_each_sample():
    layers = [nn.Embedding(11, 4) for _ in range(S)]
    stacked = StackedEmbedding(torch.stack([m.weight for m in layers]))
    shared, own = torch.randint(11, (2, 5)), torch.randint(11, (S, 2, 5))
    for s, layer in enumerate(layers):
        assert torch.equal(stacked(shared)[s], layer(shared))
        assert torch.equal(stacked(shared[0])[s], layer(shared[0]))
        assert torch.equal(stacked(own)[s], layer(own[s]))


@torch.no_grad()
def test_reordered_beams_go_on_as_their_rows_would():
    stacked = stack("lstm", members("lstm", 4, 6, 2, False))
    x, then, order = torch.randn(S, 3, 5, 4), torch.randn(S, 4, 1, 4), torch.tensor([2, 0, 0, 1])
    out, _ = stacked(then, reorder(stacked(x)[1], order))
    expected, _ = stacked(then, stacked(x[:, order])[1])
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-6)


def test_wrong_shapes_are_told():
    stacked = stack("gru", members("gru", 4, 6, 1, False))
    for bad in (torch.zeros(2, 3, 4), torch.zeros(S + 1, 2, 3, 4)):
        with pytest.raises(LangevinError, match=r"expected \[S, rows, time, inputs\] with S = 3"):
            stacked(bad)
    with pytest.raises(LangevinError, match=r"expected \[3, …, 5\], got \(2, 5\)"):
        StackedLinear(torch.zeros(S, 2, 5))(torch.zeros(2, 5))
    with pytest.raises(LangevinError, match="expected tokens"):
        StackedEmbedding(torch.zeros(S, 2, 5))(torch.zeros(2, 1, 1, dtype=torch.long))
    with pytest.raises(LangevinError, match="cell must be one of lstm, gru, rnn"):
        StackedRecurrent("lsmt", [])
