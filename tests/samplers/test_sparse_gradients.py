"""Sparse gradients in a model: resuming, twins among torch's optimisers, what a step may touch,
what is refused."""

import copy

import pytest
import torch

from langevin.samplers import PSGLD, SGHMC, SGLD, late_rows
from langevin.samplers.late_rows import LateRows


class Words(torch.nn.Module):
    """An embedding of 40 words and a head."""

    def __init__(self, sparse=True):
        super().__init__()
        torch.manual_seed(5)
        self.embedding = torch.nn.Embedding(40, 6, sparse=sparse)
        self.head = torch.nn.Linear(6, 3)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


def train(model, optimizers, steps, first=0):
    for i in range(first, first + steps):
        tokens = torch.randint(0, 30, (2, 4), generator=torch.Generator().manual_seed(i))
        for optimizer in optimizers:
            optimizer.zero_grad()
        model(tokens).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()


@pytest.mark.parametrize("kind", [SGLD, PSGLD])
def test_resumed_equals_uninterrupted(kind):
    def start():
        model = Words()
        sampler = kind(model.parameters(), 0.05, num_data=20, prior_var=1.0, seed=3)
        sampler.attach(model.embedding)
        return model, sampler

    model, sampler = start()
    train(model, [sampler], 7)
    saved, weights = copy.deepcopy(sampler.state_dict()), copy.deepcopy(model.state_dict())
    train(model, [sampler], 6, first=7)
    sampler.catch_up_all()
    again, resumed = start()
    again.load_state_dict(weights)
    resumed.load_state_dict(saved)
    train(again, [resumed], 6, first=7)
    resumed.catch_up_all()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(("twin", "kind", "settings"), [
    (torch.optim.SGD, SGLD, {}),
    (torch.optim.Adagrad, PSGLD, {"preconditioner": "adagrad", "eps": 1e-10}),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # torch.optim.Adagrad
def test_optimiser_twin(twin, kind, settings):
    """At temperature 0 under a flat prior: torch's optimisers with sparse gradients."""
    ours, theirs = Words().double(), Words().double()
    sampler = kind(ours.parameters(), 0.1, num_data=20, temperature=0.0, **settings)
    sampler.attach(ours.embedding)
    train(ours, [sampler], 15)
    train(theirs, [twin(theirs.parameters(), lr=0.1)], 15)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-14)


def test_a_step_touches_the_rows_of_its_batch_alone():
    model = Words()
    sampler = SGLD(model.parameters(), 0.05, num_data=20, seed=0, prior_var=1.0)
    sampler.attach(model.embedding)
    train(model, [sampler], 3)
    before = model.embedding.weight.detach().clone()
    model(torch.tensor([[7, 7, 9]])).sum().backward()
    moved = (model.embedding.weight != before).any(1).nonzero().flatten().tolist()
    assert set(moved) <= {7, 9}
    late = sampler.late[model.embedding.weight]
    assert (late.seen[[7, 9]] == late.clock.now).all()
    assert (late.seen < late.clock.now).any()
    read = model.embedding.weight.detach().clone()
    sampler.zero_grad()
    model(torch.tensor([[7, 7, 9]]))
    assert torch.equal(model.embedding.weight, read), "reading twice moves nothing"


def test_no_temporary_of_the_size_of_the_embedding(monkeypatch):
    sizes = []
    late = LateRows.late
    monkeypatch.setattr(LateRows, "late", lambda self, rows, *rest: sizes.append(len(rows)) or late(self, rows, *rest))
    embedding = torch.nn.Embedding(10_000, 4, sparse=True)
    sampler = PSGLD(embedding.parameters(), 0.01, num_data=100, seed=0, fused=False)
    sampler.attach(embedding)
    for i in range(3):
        sampler.zero_grad()
        embedding(torch.arange(i, i + 50)).sum().backward()
        sampler.step()
    assert max(sizes) <= 50
    sampler.catch_up_all()
    assert max(sizes) <= late_rows.ROWS_AT_ONCE
    assert not sampler.late


def test_a_skipped_parameter_owes_nothing():
    """A parameter without gradient is left alone by a step; so are its rows."""
    model = Words()
    sampler = SGLD(model.parameters(), 0.05, num_data=20, seed=0, prior_var=1.0)
    train(model, [sampler], 2)
    sampler.catch_up_all()
    before = model.embedding.weight.detach().clone()
    sampler.zero_grad()
    sampler.step()
    sampler.catch_up_all()
    assert torch.equal(model.embedding.weight, before)


def test_a_dense_gradient_settles_the_debts_first():
    model = Words()
    sampler = SGLD(model.parameters(), 0.05, num_data=20, seed=0, prior_var=1.0)
    train(model, [sampler], 2)
    expected = Words()
    expected.load_state_dict(model.state_dict())
    assert model.embedding.weight in sampler.late
    sampler.zero_grad()
    model.embedding.weight.grad = torch.zeros(40, 6)
    sampler.step()
    assert model.embedding.weight not in sampler.late
    assert (model.embedding.weight != expected.embedding.weight).all()


def test_rows_named_twice_and_empty_batches():
    """A row that occurs twice moves once, by the sum; the others and an empty batch add noise
    alone."""
    weights = [torch.nn.Parameter(torch.ones(5, 3)) for _ in range(2)]
    twice = torch.sparse_coo_tensor([[1, 1, 4]], torch.ones(3, 3), (5, 3))
    empty = torch.sparse_coo_tensor(torch.empty(1, 0), torch.empty(0, 3), (5, 3))
    for weight, grad in zip(weights, (twice, twice.coalesce()), strict=True):
        sampler = SGLD([weight], 0.1, num_data=9, seed=0)
        for weight.grad in (grad, empty):
            sampler.step()
        sampler.catch_up_all()
    assert torch.equal(*weights)
    assert weights[0].unique().numel() == 15


def test_copies_leave_the_original_alone():
    model = Words()
    sampler = SGLD(model.parameters(), 0.05, num_data=20, seed=0, prior_var=1.0)
    sampler.attach(model.embedding)
    train(model, [sampler], 3)
    other, before = copy.deepcopy(model), model.embedding.weight.detach().clone()
    other(torch.arange(40))
    assert torch.equal(model.embedding.weight, before)
    copied = copy.deepcopy(sampler)
    assert not copied.late
    copied.catch_up_all()


def test_refusals():
    model = Words()
    sampler = SGHMC(model.parameters(), 0.05, num_data=20, seed=0)
    with pytest.raises(ValueError, match=r"SGHMC expects dense gradients, got a sparse one; .* use SGLD or PSGLD"):
        train(model, [sampler], 1)
    with pytest.raises(ValueError, match="sparse=True"):
        sampler.attach(torch.nn.Embedding(3, 2))
    with pytest.raises(ValueError, match="below 1 with sparse gradients"):
        train(model, [SGLD(model.parameters(), 3.0, num_data=1, seed=0, prior_var=1.0)], 1)
    weight = torch.nn.Parameter(torch.ones(4, 3))
    weight.grad = torch.ones(4, 3).to_sparse()
    with pytest.raises(ValueError, match="got 2 sparse and 0 dense dimensions"):
        SGLD([weight], 0.1, num_data=9, seed=0).step()
