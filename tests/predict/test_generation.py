import math

import pytest
import torch

from langevin.data.vocabulary import END, Vocabulary
from langevin.predict.generation import Drawing, letters, narrow


def test_top_k_and_top_p():
    p = torch.tensor([0.1, 0.4, 0.3, 0.2])
    assert narrow(p, 2, None).tolist() == pytest.approx([0, 0.4, 0.3, 0])
    assert narrow(p, None, 0.65).tolist() == pytest.approx([0, 0.4, 0.3, 0])
    assert narrow(p, None, 0.75).tolist() == pytest.approx([0, 0.4, 0.3, 0.2])
    assert narrow(p, None, 1e-9).tolist() == pytest.approx([0, 0.4, 0, 0])
    assert torch.equal(narrow(p, None, None), p)
    assert math.isclose(float(narrow(p, 3, 1.0).sum()), 0.9, rel_tol=1e-6)


def test_tokens_are_drawn_as_often_as_they_are_probable():
    log_p = torch.tensor([0.5, 0.3, 0.2]).log()
    draw = Drawing(softmax_temperature=0.5).begin()
    counts = torch.bincount(torch.tensor([draw(log_p) for _ in range(4000)]), minlength=3)
    expected = torch.tensor([0.25, 0.09, 0.04]) / 0.38
    assert (counts / 4000 - expected).abs().max() < 4 * math.sqrt(0.25 / 4000)


@pytest.mark.parametrize(("before", "written"), [
    ("", "a b\na a"), ("b", " a b\na a"), ("b ", "a b\na a"), ("b\n", "a b\na a")])
def test_words_stand_apart_and_lines_begin_at_once(before, written):
    vocabulary = Vocabulary("word", ["a", "b", END])
    assert "".join(letters(vocabulary, [0, 1, 2, 0, 0], before)) == written


def test_a_letter_waits_for_its_last_byte():
    vocabulary = Vocabulary("byte", [chr(n) for n in range(256)])
    assert list(letters(vocabulary, "été".encode(), "")) == ["é", "t", "é"]
    assert list(letters(vocabulary, b"a\xc3", "")) == ["a", "\ufffd"]


def test_the_least_temperature_is_that_of_none():
    log_p = torch.tensor([0.3, 0.5, 0.2]).log()
    draw = Drawing(softmax_temperature=1e-320).begin()
    assert [draw(log_p) for _ in range(5)] == [1] * 5
