"""Mixtures against sums written out, weights against a search, errors against many texts."""

import math

import pytest
import torch

from langevin.errors import LangevinError
from langevin.posterior import mixture as mixtures
from langevin.posterior.mixture import (
    fit_weights,
    log_mixture,
    mixture,
    paired_gain,
    part_spread,
)
from langevin.posterior.streaming import predictive

SIZES = (3, 1, 2)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.log_softmax(3 * torch.randn(*shape, generator=generator, dtype=torch.float64), -1)


def weights_of(rows: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    raw = torch.rand(sum(SIZES), rows, generator=generator, dtype=torch.float64)
    return raw / raw.sum(0)


def test_a_mixture_is_what_its_sums_say():
    log_p, weights = drawn(6, 4, 7), weights_of(4)
    found = mixture(log_p, weights, SIZES)
    for row in range(4):
        p, w = log_p[:, row].exp(), weights[:, row]
        mean = sum(w[k] * p[k] for k in range(6))
        total = -sum(x * math.log(x) for x in mean.tolist())
        of_members = of_parts = between = 0.0
        for first, last in ((0, 3), (3, 4), (4, 6)):
            share = w[first:last].sum()
            member = sum(w[k] * p[k] for k in range(first, last)) / share
            of_members += share * -(member * member.log()).sum()
            of_parts += sum(w[k] * -(p[k] * p[k].log()).sum() for k in range(first, last))
        between, within = total - of_members, of_members - of_parts
        assert (found.log_probs[row].exp() - mean).abs().max() < 1e-12
        assert abs(found.entropy[row] - total) < 1e-12
        assert abs(found.between[row] - between) < 1e-12
        assert abs(found.within[row] - within) < 1e-12
        assert abs(found.mutual_information[row] - (total - of_parts)) < 1e-12


def test_one_member_of_equal_samples_is_the_average_as_it_always_was():
    log_p = drawn(5, 8, 3)
    known = predictive(log_p)
    found = mixture(log_p, torch.full((5,), 0.2), (5,))
    observed = log_p[..., 1]
    assert torch.allclose(found.log_probs.exp(), known.probabilities, atol=1e-12)
    assert torch.allclose(found.mutual_information, known.epistemic, atol=1e-12)
    assert found.between.max() < 1e-12
    scatter = part_spread(observed, torch.full((5,), 0.2), (5,))
    assert torch.allclose(scatter.std, known.std[:, 1], atol=1e-12)
    assert torch.allclose(scatter.p, known.probabilities[:, 1], atol=1e-12)


def test_the_spread_of_members_is_told_from_that_of_samples():
    p = torch.tensor([0.2, 0.4, 0.9], dtype=torch.float64)
    found = part_spread(p.log()[:, None], torch.tensor([0.25, 0.25, 0.5]), (2, 1))
    assert abs(found.p - 0.6) < 1e-12
    assert (found.members[:, 0] - torch.tensor([0.3, 0.9], dtype=p.dtype)).abs().max() < 1e-12
    assert abs(found.between - (0.5 * 0.3**2 + 0.5 * 0.3**2)) < 1e-12
    assert abs(found.within - 0.5 * 0.02) < 1e-12  # variance of .2 and .4 over n − 1


def test_a_member_without_weight_says_nothing():
    log_p, weights = drawn(6, 4, 7), weights_of(4)
    weights[3] = 0
    weights /= weights.sum(0)
    found, without = mixture(log_p, weights, SIZES), [0, 1, 2, 4, 5]
    fewer = mixture(log_p[without], weights[without], (3, 2))
    assert torch.allclose(found.log_probs, fewer.log_probs)
    assert torch.allclose(found.between, fewer.between)
    assert torch.isfinite(part_spread(log_p[..., 0], weights, SIZES).std).all()


def test_weights_by_validation_are_those_of_a_search():
    log_p = torch.stack([drawn(2000, 9, seed=2)[:, 0], drawn(2000, 9, seed=3)[:, 0]])
    log_p[0] += 0.4
    found = fit_weights(log_p)
    grid = torch.linspace(0, 1, 4001, dtype=torch.float64)
    scores = [log_mixture(log_p, torch.stack([w, 1 - w])).mean().item() for w in grid[1:-1]]
    best = grid[1 + int(torch.tensor(scores).argmax())]
    assert 0.1 < best < 0.9
    assert abs(found[0] - best) < 1e-3
    assert abs(found.sum() - 1) < 1e-12


def test_a_member_that_is_always_better_gets_all_the_weight():
    log_p = torch.stack([torch.full((1000,), -1.0), torch.full((1000,), -2.0)])
    assert fit_weights(log_p)[0] > 0.999


def test_too_little_validation_gives_equal_weights():
    log_p = torch.stack([torch.full((5000,), -1.0), torch.full((5000,), -2.0)])
    assert fit_weights(log_p[:, : mixtures.FEWEST - 1]).tolist() == [0.5, 0.5]
    assert fit_weights(log_p[:, : mixtures.FEWEST])[0] > 0.99


def test_the_error_of_a_gain_knows_that_neighbours_depend_on_each_other():
    generator = torch.Generator().manual_seed(4)
    errors, gains = [], []
    for _ in range(200):  # texts whose topic changes every 50 tokens
        topic = torch.randn(200, generator=generator).repeat_interleave(50)
        difference = topic + torch.randn(10_000, generator=generator)
        mean, error = paired_gain(torch.zeros(10_000), difference)
        gains.append(mean)
        errors.append(error)
    true = torch.tensor(gains).std().item()
    assert 0.8 < torch.tensor(errors).mean().item() / true < 1.2
    naive = math.sqrt(2 / 10_000)
    assert true > 3 * naive


def test_a_text_of_a_few_tokens_has_a_gain_without_an_error():
    mean, error = paired_gain(torch.ones(300), torch.full((300,), 1.5))
    assert (mean, error) == (0.5, None)


@pytest.mark.parametrize("other", [torch.ones(3), torch.ones(4, 2), torch.ones(0)])
def test_gains_are_of_the_same_tokens(other):
    with pytest.raises(LangevinError, match=r"expected two vectors over the same tokens, got .+; "):
        paired_gain(torch.ones(4), other)


def test_members_are_weighed_on_tokens():
    with pytest.raises(LangevinError, match=r"expected log p of tokens by each member.+; score"):
        fit_weights(torch.zeros(2, 0))
