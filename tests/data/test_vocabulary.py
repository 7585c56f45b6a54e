from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from langevin.data.vocabulary import UNKNOWN, Vocabulary
from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.tasks import open_task


@given(st.binary(min_size=1, max_size=200))
def test_bytes_round_trip(raw):
    vocabulary = Vocabulary.build(raw, "byte")
    assert vocabulary.decode(vocabulary.encode(raw)) == raw


@given(st.text(min_size=1, max_size=200).filter(lambda text: text.encode("utf-8", "ignore").decode() == text))
def test_characters_round_trip(text):
    vocabulary = Vocabulary.build(text.encode(), "char")
    assert vocabulary.decode(vocabulary.encode(text.encode())).decode() == text


def test_words_round_trip_with_line_ends():
    raw = b"the cat sat\non the mat\n"
    vocabulary = Vocabulary.build(raw, "word")
    assert vocabulary.decode(vocabulary.encode(raw)).decode().split() == raw.decode().split()
    assert vocabulary.decode(vocabulary.encode(raw)) == raw
    assert vocabulary.tokens[0] == "<eos>"  # both lines end: among the most frequent, first in the alphabet
    assert len(vocabulary.encode(raw)) == 8


def test_rare_words_become_unknown():
    vocabulary = Vocabulary.build(b"a a a b b c\n", "word", min_count=2)
    assert set(vocabulary.tokens) == {"<unk>", "a", "b", "<eos>"}
    assert vocabulary.decode(vocabulary.encode(b"a zebra")) == b"a <unk>\n"


def test_size_is_capped_and_end_of_line_kept():
    vocabulary = Vocabulary.build(b"a a a b b c d e\n", "word", max_size=3)
    assert len(vocabulary) == 3
    assert {"<unk>", "<eos>"} <= set(vocabulary.tokens)


def test_unknown_byte_is_named():
    with pytest.raises(LangevinError, match=r"'z'.*not among the 3"):
        Vocabulary.build(b"abc", "byte").encode(b"abz")


def test_unknown_word_without_unk_is_named():
    with pytest.raises(LangevinError, match="'dog'"):
        Vocabulary.build(b"cat cat\n", "word").encode(b"dog")


def test_latin1_text_is_refused_with_the_position():
    with pytest.raises(LangevinError, match="0xe9 at 3"):
        Vocabulary.build("café".encode("latin-1"), "char")


def test_encoding_is_long():
    assert Vocabulary.build(b"ab", "byte").encode(b"abba").dtype == torch.long


def test_running_text_has_no_ends_of_sentences():
    raw = b"the cat\nsat on the\n\nmat\n"
    vocabulary = Vocabulary.build(raw, "word", running=True)
    assert "<eos>" not in vocabulary.tokens
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again.decode(again.encode(raw)) == b"the cat sat on the mat"


def test_words_of_a_text_are_those_of_its_training_part(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("the snow lay deep and the snow lay long\n" * 40 + "a zebra and a zebra\n" * 4)
    settings = [f"corpus={path}", "level=word", "batch_size=2", "window=5"]
    task = open_task(load_recipe("text", settings))
    assert "zebra" not in task.vocabulary.numbers
    unknown = task.vocabulary.numbers["<unk>"]
    assert (task.evaluated["test"].streams == unknown).any()
    assert not (task.evaluated["train"].streams == unknown).any()
    assert task.add_file(path) == "text"  # any other text can be scored


def test_words_that_were_cut_before_and_unknown_ones():
    vocabulary = Vocabulary.of_words(Counter("baacab"), min_count=2, first=[UNKNOWN])
    assert vocabulary.tokens == ["<unk>", "a", "b"]
    assert vocabulary.encode_tokens(["a", "c", "b"]).tolist() == [1, 0, 2]
    assert vocabulary.encode_tokens([]).shape == (0,)
    assert Vocabulary.of_words(Counter("baa"), max_size=2, first=[UNKNOWN]).tokens == ["<unk>", "a"]


def test_a_word_without_a_place_is_named():
    with pytest.raises(LangevinError, match=r"'dog'.*not among the 1"):
        Vocabulary("word", ["cat"]).encode_tokens(["cat", "dog"])
