"""Counts on disk and back; what is damaged is refused in one line."""

import pytest
import torch
from safetensors.torch import load, save

from langevin.errors import LangevinError
from langevin.models.counts import Counts
from tests.models.test_counts import V, both, text


def test_there_and_back():
    counts, _ = both(5, start=(3, 0))
    again = Counts.from_tensors(load(save(counts.to_tensors())), V)
    assert (again.order, again.asked_order, again.vocabulary) == (5, 5, V)
    assert again.memory == counts.memory
    tokens = text(200, 40)
    for adapt in (False, True):
        expected = counts.log_probs(tokens, adapt=adapt)
        assert torch.equal(again.log_probs(tokens, adapt=adapt), expected)
    counts.add(tokens)
    again.add(tokens)
    assert torch.equal(again.log_probs(text(50, 41)), counts.log_probs(text(50, 41)))
    stored = counts.to_tensors()
    assert stored["tokens"].dtype == torch.uint8
    assert stored["parents"].dtype == torch.int16


def test_an_order_that_fell_is_remembered():
    counts = Counts.learn(text(3000, 42), V, 7, memory=44 * 700)
    again = Counts.from_tensors(counts.to_tensors(), V)
    assert (again.order, again.asked_order) == (counts.order, 7)
    assert torch.equal(again.log_probs(text(50, 43)), counts.log_probs(text(50, 43)))


def test_nothing_counted():
    again = Counts.from_tensors(Counts(V, 3).to_tensors(), V)
    assert again.log_probs(torch.tensor([1])).item() == pytest.approx(-torch.tensor(V).log().item())


def test_another_vocabulary():
    counts, _ = both(3)
    with pytest.raises(LangevinError, match=r"over the 13 tokens .*, got counts over 12"):
        Counts.from_tensors(counts.to_tensors(), 13)


def changed(name: str, row: int | slice, value: int):
    def damage(stored):
        stored[name] = stored[name].long()
        stored[name][row] = value

    return damage


def swap(name: str, tensor):
    def damage(stored):
        stored[name] = tensor(stored[name])

    return damage


def repeat_last(stored):
    for name in ("parents", "tokens", "counts"):
        stored[name] = torch.cat([stored[name], stored[name][-1:]])


DAMAGE = {
    "parent after child": (changed("parents", 5, 6), "6 among parents, where 0 to 5 may be"),
    "parent below zero": (changed("parents", 5, -1), "-1 among parents"),
    "token": (changed("tokens", 7, V), f"{V} among tokens, where 0 to {V - 1} may be"),
    "count below zero": (changed("counts", 2, -3), "-3 among counts"),
    "count too large": (changed("counts", 2, 2**40), f"{2**40} among counts"),
    "too deep": (changed("facts", 1, 2), "n-grams of 4 tokens where order is 2"),
    "order": (changed("facts", 1, 0), "order 0 of 4 and"),
    "order above what was asked": (changed("facts", 2, 3), "order 4 of 3 and"),
    "memory": (changed("facts", 3, 2**60), f"{2**60} bytes"),
    "memory for less": (changed("facts", 3, 440), "n-grams where memory is for 10"),
    "twice": (repeat_last, "an n-gram that is there twice"),
    "floats": (swap("counts", torch.Tensor.float), "counts of torch.float32"),
    "shape": (swap("counts", lambda t: t[None]), r"counts of torch.uint8 and shape \[1, "),
    "short": (swap("counts", lambda t: t[:-1]), "columns of different lengths"),
    "facts": (swap("facts", lambda t: t[:2]), "2 facts instead of vocabulary, order"),
    "gone": (lambda stored: stored.pop("parents"), "no parents"),
    "totals": (changed("counts", slice(None), 2**32 - 1), "no text of this world"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_refused(what):
    stored = both(4, length=90)[0].to_tensors()
    damage, words = DAMAGE[what]
    damage(stored)
    with pytest.raises(LangevinError, match=words) as told:
        Counts.from_tensors(stored, V)
    assert "\n" not in str(told.value)


def test_start_of_another_vocabulary():
    stored = both(3)[0].to_tensors()
    stored["start"] = torch.tensor([V])
    with pytest.raises(LangevinError, match=f"expected tokens from 0 to {V - 1}, got {V}"):
        Counts.from_tensors(stored, V)
