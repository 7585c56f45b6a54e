"""Pooling in logarithms: the formula, what weights are chosen, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch import Tensor

from langevin.errors import LangevinError
from langevin.posterior import log_pool
from langevin.posterior.log_pool import FLOOR, PULL, pool_draws, weigh, weigh_apart


def draws(count: int, items: int = 7, classes: int = 3, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, items, classes, generator=generator).log_softmax(-1)


def skilled(labels: Tensor, skill: float, seed: int, count: int = 4) -> Tensor:
    """Draws that favour the label by so much, with noise that all draws share."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(1, len(labels), 3, generator=generator)
    wobble = 0.1 * torch.randn(count, len(labels), 3, generator=generator)
    favour = skill * torch.nn.functional.one_hot(labels, 3)
    return (noise + wobble + favour).log_softmax(-1)


def nll(log_p: Tensor, labels: Tensor) -> float:
    mean = log_p.exp().mean(0)
    return float(-mean[torch.arange(len(labels)), labels].log().mean())


def test_the_pool_is_the_product_of_powers_with_few_draws_taken_again():
    one, other = draws(3, seed=1), draws(2, seed=2)
    pooled = pool_draws([one, other], [0.7, 0.6])
    assert pooled.shape == (3, 7, 3)
    for draw, partner in enumerate([0, 1, 0]):
        product = one[draw].exp() ** 0.7 * other[partner].exp() ** 0.6
        torch.testing.assert_close(pooled[draw].exp(), product / product.sum(-1, keepdim=True))


def test_one_member_with_weight_one_is_itself_and_weight_zero_is_nothing():
    one, other = draws(3, seed=1), draws(2, seed=2)
    torch.testing.assert_close(pool_draws([one], [1.0]), one)
    torch.testing.assert_close(pool_draws([one, other], [1.0, 0.0]), one)


def test_no_member_rules_out_a_class():
    sure = torch.tensor([[[0.0, -torch.inf, -torch.inf]]])
    pooled = pool_draws([sure, torch.tensor([[[0.5, 0.4, 0.1]]]).log()], [0.5, 0.5])
    assert pooled.isfinite().all()
    ratio = (pooled[0, 0, 1] - pooled[0, 0, 0]).item()
    assert ratio == pytest.approx(0.5 * np.log(FLOOR) + 0.5 * np.log(0.8), rel=1e-5)


def test_the_weights_are_the_minimum_of_nll_and_pull():
    labels = torch.arange(300) % 3
    members = {"good": skilled(labels, 2.0, 1), "weak": skilled(labels, 0.5, 2, count=3)}
    found = weigh(members, labels)

    def objective(a: dict[str, float]) -> float:
        pooled = pool_draws(list(members.values()), list(a.values()))
        return nll(pooled, labels) + 0.5 * PULL / 300 * sum((v - 0.5) ** 2 for v in a.values())

    best = objective(found)
    assert found["good"] > 2 * found["weak"] > 0
    for name in members:
        for step in (-0.05, 0.05):
            assert objective(found | {name: found[name] + step}) > best


def test_the_sum_is_free_so_that_it_takes_back_what_is_too_sure():
    labels = torch.arange(3000) % 3
    # logits x are shifted by 1.5 in noise of unit variance: Bayes' rule gives 1.5·x
    sure = (3 * skilled(labels, 1.5, 1)).log_softmax(-1)
    assert weigh({"sure": sure}, labels)["sure"] == pytest.approx(1.5 / 3, abs=0.05)


def test_a_member_that_knows_nothing_of_it_gets_no_negative_weight():
    labels = torch.arange(600) % 3
    wrong = skilled((labels + 1) % 3, 3.0, 2)
    weights = weigh({"good": skilled(labels, 2.0, 1), "wrong": wrong}, labels)
    assert weights["wrong"] == 0


def test_few_items_pull_to_equal_weights():
    labels = torch.arange(900) % 3
    members = {"good": skilled(labels, 2.0, 1), "weak": skilled(labels, 0.0, 2)}
    many = weigh(members, labels)
    few = weigh({name: log_p[:, :6] for name, log_p in members.items()}, labels[:6])
    assert few["good"] - few["weak"] < many["good"] - many["weak"]


def test_blocks_of_items_change_nothing(monkeypatch: pytest.MonkeyPatch):
    labels = torch.arange(300) % 3
    members = {"good": skilled(labels, 2.0, 1), "weak": skilled(labels, 0.5, 2)}
    whole = weigh(members, labels)
    monkeypatch.setattr(log_pool, "WORKED_ON", 100)
    parts = weigh(members, labels)
    assert parts == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize(("members", "problem"), [
    ([], "at least one member"),
    ([draws(2), draws(2, items=6)], r"same items and classes, got \[7, 3\] and \[6, 3\]"),
    ([draws(2), draws(2, classes=4)], "same items and classes"),
    ([draws(2)[0]], r"\[draws, items, classes\]"),
])
def test_members_that_cannot_be_pooled(members: list[Tensor], problem: str):
    with pytest.raises(LangevinError, match=problem):
        pool_draws(members, [1.0] * len(members))


def test_weights_and_labels_must_fit():
    with pytest.raises(LangevinError, match="a weight for each of 2 members"):
        pool_draws([draws(1), draws(1)], [1.0])
    with pytest.raises(LangevinError, match="the 5 items that weigh"):
        weigh({"one": draws(1)}, torch.zeros(5, dtype=torch.long))


def test_folds_are_foreseen_by_weights_from_the_others():
    """A member that knows every item but those of one fold earns no trust there."""
    observed = torch.randint(0, 2, (100,), generator=torch.Generator().manual_seed(0))
    sure = F.one_hot(observed, 2).float().clamp(0.02, 0.98).log()
    liar = sure.clone()
    liar[::5] = sure[::5].flip(1)
    known = {"even": torch.full((1, 100, 2), 0.5).log(), "liar": liar[None]}
    apart = weigh_apart(known, observed)
    assert apart.shape == (100,)
    assert apart[::5].mean() < -1 < apart[1::5].mean() < 0
    weights = weigh(known, observed)
    whole = pool_draws(list(known.values()), list(weights.values()))[0]
    assert apart.mean() < whole.gather(1, observed[:, None]).mean()
