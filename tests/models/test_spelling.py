"""Words that a vocabulary does not have, written byte by byte."""

import random

import pytest
import torch

from langevin.models.spelling import END, SYMBOLS, Spelling, spell_out

PARTS = ["sno", "w", "ro", "ad", "ba", "ll", "é", "gar", "den", "hou", "se", "ti", "me"]


def words(number, seed):
    drawn = random.Random(seed)
    made = ("".join(drawn.choice(PARTS) for _ in range(drawn.randint(1, 4))) for _ in range(10**6))
    found = dict[str, None]()
    while len(found) < number:
        found[next(made)] = None
    return list(found)


@pytest.fixture(scope="module")
def spelling():
    return Spelling.learn(words(800, 1))


def test_a_word_is_its_bytes_and_its_end():
    assert spell_out(["a", "é"]).tolist() == [97, END, 195, 169, END]


def test_what_may_come_next_sums_to_one(spelling):
    reader = spelling.counts.reader()
    total = 0.0
    for symbol in [*"roadé".encode(), END]:
        p = reader.foresee()[0, 0].exp()
        assert len(p) == SYMBOLS
        assert p.sum().item() == pytest.approx(1, abs=1e-9)
        total += float(p[symbol].log())
        reader.read(torch.tensor([[symbol]]))
    assert spelling.log_p(["roadé"]) == pytest.approx(total, abs=1e-9)
    assert spelling.log_p(["roadé", "snow", "roadé"]) == pytest.approx(
        2 * total + spelling.log_p(["snow"]))


def test_it_has_learnt_how_words_look(spelling):
    likely, unlikely = spelling.log_p(["gardenhouse"]), spelling.log_p(["xqzvkjpwxqz"])
    assert likely > unlikely + 20
    held_out = [word for word in words(1600, 9) if word not in set(words(800, 1))][:100]
    uniform = -len(spell_out(held_out)) * torch.tensor(float(SYMBOLS)).log().item()
    assert spelling.log_p(held_out) > uniform / 2


def test_of_a_few_words_nothing_is_learnt():
    assert Spelling.learn(words(100, 1)) is None
