"""An ensemble of models of any kind: captioners, classifiers, what vmap cannot run."""

import math

import pytest
import torch
from torch import nn

from langevin import Ensemble, LangevinError
from langevin.models.recurrent import Recurrent
from langevin.models.stacked import reorder
from tests.posterior.test_ensemble import PLANS, S, V, close, language_models


class Captions(nn.Module):
    """A model with methods beside forward, and an LSTM of torch."""

    def __init__(self):
        super().__init__()
        self.image, self.embedding = nn.Linear(9, 6), nn.Embedding(V, 6)
        self.lstm, self.output = nn.LSTM(6, 6, 2), nn.Linear(6, V)

    def begin(self, features):
        return self.lstm(self.image(features)[None])[1]

    def step(self, tokens, carry):
        hidden, carry = self.lstm(self.embedding(tokens)[None], carry)
        return self.output(hidden[0]), carry


@pytest.mark.parametrize("plan", PLANS)
@torch.no_grad()
def test_methods_and_reordered_beams(plan):
    members = [Captions().eval() for _ in range(S)]
    ensemble = Ensemble(members[0], members, plan=plan)
    features, order, tokens = torch.randn(3, 9), torch.tensor([2, 0, 0, 1]), torch.tensor([1, 2, 3, 4])
    carry = reorder(ensemble(features, method="begin"), order)
    got, after = ensemble(tokens, carry=carry, method="step")
    for s, member in enumerate(members):
        logits, state = member.step(tokens, member.begin(features[order]))
        close(got[s], logits)
        close(after[0][s], state[0])


class Sentences(nn.Module):
    """A bidirectional classifier of padded rows; torch's packed sequences are the reference."""

    def __init__(self):
        super().__init__()
        self.embedding, self.recurrent = nn.Embedding(V, 6), Recurrent("gru", 6, 5, 2, bidirectional=True)
        self.output = nn.Linear(10, 4)

    def forward(self, tokens, lengths):
        _, states = self.recurrent(self.embedding(tokens), lengths=lengths)
        return self.output(states[-1][0].transpose(0, 1).flatten(1))


@torch.no_grad()
def test_ragged_rows_of_a_classifier():
    members = [Sentences().eval() for _ in range(S)]
    ensemble = Ensemble(members[0], members, plan="batched")
    tokens, lengths = torch.randint(V, (3, 8)), torch.tensor([8, 3, 5])
    got = ensemble.log_probs(tokens, lengths, each=True)
    for s, member in enumerate(members):
        for row, length in enumerate(lengths.tolist()):
            _, states = member.recurrent(member.embedding(tokens[row : row + 1, :length]))
            alone = member.output(states[-1][0].transpose(0, 1).flatten(1)).log_softmax(-1)
            close(got.each[s, row], alone[0])
    assert got.carry is None
    close(ensemble.log_probs(tokens, lengths=lengths).log_probs, got.log_probs)


@pytest.mark.parametrize("plan", PLANS)
@torch.no_grad()
def test_any_other_model_with_buffers(plan):
    members = [nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)) for _ in range(S)]
    for member in members:
        member(torch.randn(20, 4))  # running means of its own
        member.eval()
    x = torch.randn(5, 4)
    close(Ensemble(members[0], members, plan=plan)(x), torch.stack([m(x) for m in members]))


class Branching(nn.Module):
    """Takes another way if a number is positive: vmap has no way through."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.linear(x)
        return y if y.sum() > 0 else -y


@torch.no_grad()
def test_a_model_that_vmap_cannot_run_is_run_sample_by_sample():
    members = [Branching() for _ in range(S)]
    ensemble, x = Ensemble(members[0], members), torch.randn(2, 4)
    with pytest.raises(RuntimeError):
        ensemble(torch.randn(2, 3))  # a wrong input says nothing about the model
    assert not ensemble.one_by_one
    for _ in range(2):
        close(ensemble(x), torch.stack([m(x) for m in members]))
    assert ensemble.one_by_one == {"forward"}
    with pytest.raises(LangevinError, match="plan='auto'"):
        Ensemble(members[0], members, plan="batched")(x)


def test_one_sample_equals_the_plain_model():
    members = language_models(count=1)
    tokens = torch.randint(V, (2, 5))
    got = Ensemble(members[0], members).log_probs(tokens)
    close(got.log_probs, members[0](tokens)[0].log_softmax(-1).detach())
    assert not got.log_probs.requires_grad


def test_average_is_of_probabilities():
    """Two samples with p = 0.5 and 0.9 give 0.7: a mean of logits gives 0.75, of log-probabilities
    0.67."""
    samples = [{"weight": torch.tensor([[0.0], [logit]])} for logit in (0.0, math.log(9.0))]
    for plan in PLANS:
        p = Ensemble(nn.Linear(1, 2, bias=False), samples, plan=plan).log_probs(torch.ones(1, 1)).log_probs.exp()
        torch.testing.assert_close(p, torch.tensor([[0.3, 0.7]]))
