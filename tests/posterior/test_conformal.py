"""Sets by hand, and their coverage over hundreds of calibration sets against its exact law."""

import math

import pytest
import torch
from scipy.stats import betabinom

from langevin import LangevinError
from langevin.posterior.conformal import (
    SCORES,
    SetRule,
    adaptive,
    beta_binomial_cdf,
    fewest_items,
    learn_sets,
    least_alpha,
    rank_of,
    score_sets,
)

P = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5], [0.4, 0.35, 0.25]])


def test_scores_by_hand():
    assert SCORES["least"](P)[0].tolist() == pytest.approx([0.3, 0.8, 0.9])
    assert adaptive(P)[0].tolist() == pytest.approx([0.7, 0.9, 1.0])
    assert adaptive(P)[2].tolist() == pytest.approx([1.0, 0.8, 0.5])


def test_a_rule_by_hand():
    """Scores of the true classes: .3, .4, .7, .75; k = ⌈5·0.6⌉ = 3, so that p ≥ .3 is in."""
    rule = learn_sets(P, torch.tensor([0, 1, 1, 2]), alpha=0.4)
    assert rule.threshold == pytest.approx(0.7)
    assert rule.items == 4
    new = torch.tensor([[0.35, 0.33, 0.32], [0.9, 0.05, 0.05], [0.29, 0.27, 0.28]])
    assert rule.sets(new).tolist() == [
        [True, True, True], [True, False, False], [True, False, False],  # the label is always in
    ]  # fmt: skip


def test_the_rank_knows_that_floats_are_not_exact():
    assert [rank_of(n, 0.1) for n in (9, 19, 20, 29, 30)] == [9, 18, 19, 27, 28]
    assert [fewest_items(alpha) for alpha in (0.5, 0.1, 0.05, 0.01)] == [1, 9, 19, 99]


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.07, 0.01])
def test_too_few_items_are_refused_with_what_can_be_had(alpha):
    fewest = fewest_items(alpha)
    p = torch.full((fewest, 2), 0.5)
    labels = torch.zeros(fewest, dtype=torch.long)
    assert learn_sets(p, labels, alpha=alpha).items == fewest
    if fewest > 1:
        with pytest.raises(LangevinError, match=f"expected at least {fewest}; bring more"):
            learn_sets(p[1:], labels[1:], alpha=alpha)
        assert learn_sets(p[1:], labels[1:], alpha=least_alpha(fewest - 1)).items == fewest - 1


def draw(items, generator, classes=4):
    """Probabilities of a model that is far too sure, and classes drawn from the true ones."""
    logits = torch.randn(items, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(logits, -1), 1, generator=generator)[:, 0]
    return torch.softmax(3 * logits, -1), labels


@pytest.mark.parametrize("method", SCORES)
@pytest.mark.parametrize(("learned", "alpha"), [(19, 0.1), (20, 0.1), (30, 0.3)])
def test_coverage_follows_its_law(method, learned, alpha):
    """Classes with a score within the threshold: Beta-binomial of mean k/(n + 1), over 600 sets.

    The rank without the correction, ⌈n(1 − α)⌉, is off by 5 standard errors and more where that is
    another rank (n = 20: 18 instead of 19), as is the one above.
    """
    g, fresh, sets = torch.Generator().manual_seed(learned), 100, 600
    rank = rank_of(learned, alpha)
    covered = 0
    for _ in range(sets):
        rule = learn_sets(*draw(learned, g), alpha=alpha, method=method)
        p, labels = draw(fresh, g)
        true = SCORES[method](p).gather(1, labels[:, None])[:, 0]
        covered += int((true <= rule.threshold).sum())
    std = betabinom.std(fresh, rank, learned + 1 - rank) / math.sqrt(sets)
    z = [(covered / sets - fresh * k / (learned + 1)) / std for k in (rank, rank - 1, rank + 1)]
    assert abs(z[0]) < 4
    assert z[1] > 5
    assert z[2] < -5


def test_every_set_keeps_the_promise_and_the_naive_threshold_does_not():
    """A set of 90 % by the model's own probabilities holds far fewer of the true classes."""
    g = torch.Generator().manual_seed(3)
    rule = learn_sets(*draw(2000, g), alpha=0.1, method="adaptive")
    p, labels = draw(5000, g)
    naive = SetRule("adaptive", 0.1, 0.9, 2000)
    assert score_sets(rule, p, labels).chance > 1e-4
    assert score_sets(naive, p, labels).chance < 1e-12


def test_the_promise_is_paid_by_size():
    g = torch.Generator().manual_seed(4)
    known, new = draw(2000, g), draw(2000, g)
    sizes = {alpha: score_sets(learn_sets(*known, alpha=alpha), *new).size
             for alpha in (0.02, 0.1, 0.3)}
    assert 4 > sizes[0.02] > sizes[0.1] > sizes[0.3] >= 1
    adaptive_size = score_sets(learn_sets(*known, alpha=0.1, method="adaptive"), *new).size
    assert adaptive_size > sizes[0.1]


def test_scores_of_sets_by_hand():
    rule = SetRule("least", 0.4, 0.7, 4)
    scores = score_sets(rule, P, torch.tensor([1, 1, 2, 0]))
    assert (scores.items, scores.covered, scores.coverage) == (4, 3, 0.75)
    assert (scores.size, scores.single) == (7 / 4, 1 / 4)
    assert scores.chance == pytest.approx(betabinom.cdf(3, 4, 3, 2))


@pytest.mark.parametrize(("covered", "items"), [(0, 5), (5, 5), (880, 1000), (17, 40)])
def test_the_chance_against_scipy(covered, items):
    expected = betabinom.cdf(covered, items, 91, 10)
    assert beta_binomial_cdf(covered, items, 91, 100) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: learn_sets(P, torch.tensor([0, 1, 2, 0]), alpha=0.0), "alpha must be between"),
    (lambda: learn_sets(P, torch.tensor([0, 1, 2, 0]), alpha=1.0), "alpha must be between"),
    (lambda: learn_sets(P, torch.tensor([0, 1, 2, 0]), alpha=1e-320), "alpha must be between"),
    (lambda: learn_sets(P, torch.tensor([0, 1, 2, 0]), alpha=math.nan), "alpha must be between"),
    (lambda: learn_sets(P, torch.tensor([0, 1, 2, 3]), alpha=0.5), "class indices from 0 to 2"),
    (lambda: learn_sets(P[:0], torch.tensor([], dtype=torch.long), alpha=0.5), "one item"),
    (lambda: learn_sets(P, torch.tensor([0, 1, 2, 0]), method="lac"), "least, adaptive"),
    (lambda: SetRule("luck", 0.1, 0.5, 9), "method must be"),
])  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(LangevinError, match=message):
        call()


def test_no_texts_have_no_sets():
    assert SetRule("least", 0.1, 0.5, 9).sets(torch.empty(0, 3)).shape == (0, 3)
