"""Padding never changes an answer; an empty sentence is answered with the prior; the states are
torch's."""

import pytest
import torch
from torch import nn

from langevin.data.buckets import pad
from langevin.errors import LangevinError
from langevin.models.classifier import SentenceClassifier
from langevin.models.initial import initialise
from langevin.models.recurrent import CELLS, Recurrent, reverse_rows

LENGTHS = [5, 1, 9, 0, 3]


def rows():
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(1, 12, (length,), generator=generator) for length in LENGTHS]


def build(**settings):
    model = SentenceClassifier(
        12, 3, **({"cell": "lstm", "embed": 6, "hidden": 7, "layers": 2, "bidirectional": True} | settings)
    )
    initialise(model, "uniform", 0.6, 1.0, seed=0)
    return model.eval()


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("bidirectional", [True, False])
def test_alone_or_in_a_batch_the_same_probabilities(cell, bidirectional):
    model = build(cell=cell, bidirectional=bidirectional)
    together = torch.softmax(model(*pad(rows())), -1)
    alone = torch.cat([torch.softmax(model(*pad([row])), -1) for row in rows()])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)
    tokens, lengths = pad(rows())
    other = torch.where(torch.arange(tokens.shape[1]) < lengths[:, None], tokens, 11)
    assert torch.softmax(model(other, lengths), -1).equal(together)


@pytest.mark.parametrize("cell", list(CELLS))
def test_states_and_outputs_are_those_of_torch_s_packed_sequences(cell):
    ours = Recurrent(cell, 6, 7, 1, bidirectional=True)
    initialise(ours, "uniform", 0.6, 1.0, seed=1)
    lengths = torch.tensor([5, 1, 9, 3])
    x = torch.randn(4, 9, 6)
    out, states = ours(x, lengths=lengths)
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    theirs, last = ours.layers[0](packed)
    theirs, _ = nn.utils.rnn.pad_packed_sequence(theirs, batch_first=True)
    inside = (torch.arange(9) < lengths[:, None])[..., None]
    torch.testing.assert_close(out * inside, theirs, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(states[0][0], last[0] if cell == "lstm" else last, rtol=1e-5, atol=1e-6)


def test_full_rows_equal_the_pass_without_lengths():
    stack = Recurrent("lstm", 6, 7, 2, bidirectional=True)
    x = torch.randn(3, 8, 6)
    torch.testing.assert_close(stack(x, lengths=torch.full((3,), 8))[0], stack(x)[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(LangevinError, match="either a carried state or lengths"):
        stack(x, stack(x)[1], torch.full((3,), 8))


def test_rows_are_turned_round_within_their_length_and_so_are_gradients():
    x = torch.arange(8.0).view(2, 4, 1).requires_grad_()
    turned = reverse_rows(x, torch.tensor([3, 0]))
    assert turned.flatten().tolist() == [2, 1, 0, 3, 4, 5, 6, 7]
    assert reverse_rows(turned, torch.tensor([3, 0])).equal(x)
    (turned.flatten() * torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8])).sum().backward()
    assert x.grad.flatten().tolist() == [3, 2, 1, 4, 5, 6, 7, 8]


def test_no_gradient_reaches_padding():
    model = build().train()
    tokens, lengths = pad(rows())
    vectors = model.embedding(tokens).detach().requires_grad_()
    _, states = model.recurrent(vectors, lengths=lengths)
    states[-1][0].sum().backward()
    beyond = torch.arange(tokens.shape[1]) >= lengths[:, None]
    assert not vectors.grad[beyond].any()
    assert vectors.grad[~beyond].abs().sum(-1).gt(0).all()


def test_an_empty_sentence_is_answered_with_the_prior_and_teaches_nothing():
    model = build()
    model.set_prior(torch.tensor([6, 3, 1]))
    p = torch.softmax(model(*pad(rows())), -1)
    torch.testing.assert_close(p[3], torch.tensor([0.6, 0.3, 0.1]))
    nn.functional.cross_entropy(model(*pad(rows()[3:4])), torch.tensor([0])).backward()
    assert not any(w.grad.any() for w in model.parameters() if w.grad is not None)
    model.set_prior(torch.tensor([9, 1, 0]))
    assert model.log_prior.isfinite().all()


@pytest.mark.parametrize("kind", ["naive", "gal", "gaussian"])
def test_dropout_acts_in_training_alone_and_keeps_the_shape(kind):
    model = build(dropout=0.5, dropout_kind=kind)
    batch = pad(rows())
    still = model(*batch)
    assert still.equal(model(*batch))
    model.train()
    torch.manual_seed(0)
    one, other = model(*batch), model(*batch)
    assert one.shape == still.shape
    keep = torch.tensor(LENGTHS) > 0
    assert not one[keep].equal(other[keep])
    assert one[~keep].equal(still[~keep])
    model.zero_grad()
    one.sum().backward()
    assert all(w.grad is not None for w in model.parameters() if w.requires_grad)


def test_gal_drops_single_units_of_the_last_state_not_whole_rows():
    model = build(dropout=0.5, dropout_kind="gal", layers=1, hidden=200)
    model.train()
    torch.manual_seed(0)
    dropped = model.dropout(torch.ones(4, 400)[:, None])[:, 0]
    shares = (dropped == 0).float().mean(1)
    assert ((shares > 0.3) & (shares < 0.7)).all()


def test_vectors_can_be_frozen():
    model = build()
    model.set_vectors(torch.ones(12, 6), trained=False)
    model(*pad(rows())).sum().backward()
    assert model.embedding.weight.grad is None
    assert model.embedding.weight.eq(1).all()
