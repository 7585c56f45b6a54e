"""Numbers of n-grams: the same everywhere, as many as there is room for, shared by like words."""

import zlib

import torch

from langevin.data.characters import BUCKETS, MOST, NONE, beside_grams, grams_of


def test_numbers_of_a_word_by_hand():
    expected = [1 + zlib.crc32(gram) % BUCKETS for gram in (b"<ab", b"ab>", b"<ab>")]
    assert grams_of("ab") == (*expected, *[NONE] * (MOST - 3))
    assert grams_of("Ab") == grams_of("ab")
    assert grams_of("") == (NONE,) * MOST  # nothing between the two signs: too short


def test_long_words_keep_their_short_n_grams():
    grams = grams_of("incomprehensibilities")
    assert len(grams) == MOST
    assert NONE not in grams
    assert len(set(grams[:21]) & set(grams_of("comprehensibility"))) > 10


def test_words_stand_beside_their_n_grams():
    rows = beside_grams(torch.tensor([3, 70000]), ["snow", "\ud83d"])  # half a pair of surrogates
    assert rows.shape == (2, 1 + MOST)
    assert rows[:, 0].tolist() == [3, 70000]
    assert tuple(rows[0, 1:].tolist()) == grams_of("snow")
    assert beside_grams(torch.tensor([], dtype=torch.long), []).shape == (0, 1 + MOST)
