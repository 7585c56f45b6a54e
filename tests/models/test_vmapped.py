"""Models under vmap equal a loop over their copies, and stay themselves."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from langevin.models.recurrent import CELLS, Recurrent
from langevin.models.vmapped import VmapEmbedding, VmapRNN, vmappable

S = 3


def run(modules, *inputs, **options):
    parameters, buffers = stack_module_state([m.eval() for m in modules])
    twin = vmappable(modules[0])
    return vmap(lambda p, b: functional_call(twin, (p, b), inputs, options))(parameters, buffers)


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_torch_recurrent_layers(cell, layers, bidirectional, batch_first, bias):
    modules = [
        CELLS[cell](5, 7, layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias) for _ in range(S)
    ]
    x = torch.randn(4, 3, 5)
    state = modules[0](x)[1]
    for inputs in ((x,), (x, state)):
        out, after = run(modules, *inputs)
        for s, module in enumerate(modules):
            expected, last = module(*inputs)
            torch.testing.assert_close(out[s], expected, rtol=0, atol=1e-5)
            torch.testing.assert_close(after[0][s] if cell == "lstm" else after[s], last[0] if cell == "lstm" else last)


@pytest.mark.parametrize("cell", list(CELLS))
@torch.no_grad()
def test_our_stack_with_padded_rows(cell):
    modules = [Recurrent(cell, 5, 7, 2, bidirectional=True) for _ in range(S)]
    x, lengths = torch.randn(3, 6, 5), torch.tensor([6, 2, 5])
    out, after = run(modules, x, lengths=lengths)
    for s, module in enumerate(modules):
        for row, length in enumerate(lengths.tolist()):
            alone, state = module(x[row : row + 1, :length])
            torch.testing.assert_close(out[s, row, :length], alone[0], rtol=0, atol=1e-5)
            torch.testing.assert_close(after[-1][0][s, :, row], state[-1][0][:, 0], rtol=0, atol=1e-5)


@torch.no_grad()
def test_one_vector_and_one_token():
    heads, tables = [nn.Linear(5, 4) for _ in range(S)], [nn.Embedding(6, 5) for _ in range(S)]
    x, token = torch.randn(5), torch.tensor(4)
    for s in range(S):
        torch.testing.assert_close(run(heads, x)[s], heads[s](x), rtol=0, atol=1e-6)
        assert torch.equal(run(tables, token)[s], tables[s](token))


def test_the_model_stays_what_it_is_and_shares_its_weights():
    model = nn.Sequential(nn.Embedding(6, 5), nn.LSTM(5, 4)).train()
    twin = vmappable(model)
    assert (type(model[0]), type(model[1])) == (nn.Embedding, nn.LSTM)
    assert (type(twin[0]), type(twin[1])) == (VmapEmbedding, VmapRNN)
    assert model.training
    assert not twin.training
    assert twin[1].weight_ih_l0 is model[1].weight_ih_l0


def test_what_the_stacked_layers_cannot_do_is_left_to_torch():
    class Own(nn.LSTM):
        pass

    kept = [nn.Embedding(6, 5, max_norm=1.0), nn.LSTM(5, 4, proj_size=2), nn.RNN(5, 4, nonlinearity="relu"), Own(5, 4)]
    assert [type(m) for m in vmappable(nn.ModuleList(kept))] == [type(m) for m in kept]


@torch.no_grad()
def test_samples_on_another_axis():
    modules = [nn.GRU(5, 7, batch_first=True).eval() for _ in range(S)]
    parameters, twin, x = stack_module_state(modules)[0], vmappable(modules[0]), torch.randn(4, 3, S, 5)
    out, _ = vmap(lambda p, x: functional_call(twin, p, (x,)), in_dims=(0, 2))(parameters, x)
    for s, module in enumerate(modules):
        torch.testing.assert_close(out[s], module(x[:, :, s])[0], rtol=0, atol=1e-5)
