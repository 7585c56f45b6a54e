"""Our stacks equal torch's with the same weights; carried state equals one long pass."""

import pytest
import torch
from torch import nn

from langevin.models import recurrent
from langevin.models.initial import initialise
from langevin.models.language_model import LanguageModel
from langevin.models.recurrent import CELLS, Recurrent, detach


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("bidirectional", [False, True])
def test_equals_torch_multilayer(cell, bidirectional):
    ours = Recurrent(cell, 5, 7, 3, bidirectional=bidirectional)
    initialise(ours, "uniform", 0.5, 1.0, seed=0)
    theirs = CELLS[cell](5, 7, 3, batch_first=True, bidirectional=bidirectional)
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            number = int(name.split("_l")[1].split("_")[0])
            weight.copy_(getattr(ours.layers[number], name.replace(f"_l{number}", "_l0")))
    x = torch.randn(4, 6, 5)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0], rtol=1e-5, atol=1e-6)


def gate_by_gate(cell: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The equations of the three cells written out, one row, one layer."""
    w, u, b, c = cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0
    h = memory = torch.zeros(u.shape[1])
    out = []
    for step in x:
        if isinstance(cell, nn.LSTM):
            i, f, g, o = (w @ step + b + u @ h + c).chunk(4)
            memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
            h = o.sigmoid() * memory.tanh()
        elif isinstance(cell, nn.GRU):
            (wr, wz, wn), (ur, uz, un) = (w @ step + b).chunk(3), (u @ h + c).chunk(3)
            r, z = (wr + ur).sigmoid(), (wz + uz).sigmoid()
            h = (1 - z) * (wn + r * un).tanh() + z * h
        else:
            h = (w @ step + b + u @ h + c).tanh()
        out.append(h)
    return torch.stack(out)


@pytest.mark.parametrize("cell", list(CELLS))
def test_cells_follow_their_equations(cell):
    stack = Recurrent(cell, 3, 4, 1)
    initialise(stack, "uniform", 0.7, 1.0, seed=1)
    x = torch.randn(1, 6, 3)
    torch.testing.assert_close(stack(x)[0][0], gate_by_gate(stack.layers[0], x[0]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", list(CELLS))
def test_carried_state_equals_one_long_pass(cell):
    model = LanguageModel(11, cell=cell, embed=5, hidden=6, layers=2)
    tokens = torch.randint(11, (3, 20))
    whole, _ = model(tokens)
    first, carry = model(tokens[:, :8])
    second, _ = model(tokens[:, 8:], detach(carry))
    torch.testing.assert_close(torch.cat([first, second], 1), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "rnn"])
def test_second_bias_is_frozen_at_zero(cell):
    stack = Recurrent(cell, 3, 4, 2)
    initialise(stack, "fan", 1.0, 1.0, seed=0)
    second = [w for n, w in stack.named_parameters() if "bias_hh" in n]
    assert second
    assert all(not w.requires_grad and not w.any() for w in second)


@pytest.mark.parametrize("scheme", ["fan", "uniform", "authors"])
def test_initialisation(scheme):
    model = LanguageModel(11, cell="lstm", embed=16, hidden=16, layers=1)
    initialise(model, scheme, 0.05, 3.0, seed=0)
    lstm = model.recurrent.layers[0]
    assert lstm.bias_ih_l0[16:32].eq(3).all()
    assert not lstm.bias_ih_l0[:16].any()
    bound = 0.25 if scheme == "fan" else 0.05
    assert 0.8 * bound < lstm.weight_ih_l0.abs().max() <= bound
    block = lstm.weight_hh_l0[:16]
    is_orthogonal = torch.allclose(block @ block.T, torch.eye(16), atol=1e-5)
    assert is_orthogonal == (scheme == "authors")


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_kernels_that_do_not_know_bfloat16_run_in_float32(monkeypatch, cell):
    monkeypatch.setattr(recurrent, "kernels_take_bfloat16", lambda: False)
    stack = recurrent.Recurrent(cell, 5, 7, 2)
    x = torch.randn(3, 4, 5)
    expected, _ = stack(x)
    with torch.autocast("cpu", torch.bfloat16):
        got, _ = stack(x)
    assert got.dtype == torch.float32
    assert torch.equal(got, expected)
    got.sum().backward()
