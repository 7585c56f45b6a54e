import tracemalloc
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from langevin.data import text
from langevin.data.vocabulary import END, UNKNOWN, Vocabulary
from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.tasks import open_task


@given(st.binary(min_size=1, max_size=200))
def test_bytes_round_trip(raw):
    vocabulary = Vocabulary.build(raw, "byte")
    assert vocabulary.decode(vocabulary.encode(raw)) == raw


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200))
def test_characters_round_trip(letters):
    vocabulary = Vocabulary.build(letters.encode(), "char")
    assert vocabulary.decode(vocabulary.encode(letters.encode())).decode() == letters


def test_words_round_trip_with_line_ends():
    raw = b"the cat sat\non the mat\n"
    vocabulary = Vocabulary.build(raw, "word")
    assert vocabulary.decode(vocabulary.encode(raw)).decode().split() == raw.decode().split()
    assert vocabulary.decode(vocabulary.encode(raw)) == raw
    assert vocabulary.tokens[0] == "<eos>"  # among the most frequent, first in the alphabet
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
        Vocabulary("byte", ["a", "b", "c"]).encode(b"abz")  # an old vocabulary


def test_unknown_word_without_unk_is_named():
    with pytest.raises(LangevinError, match="'dog'"):
        Vocabulary.build(b"cat cat\n", "word").encode(b"dog")


def test_latin1_text_is_refused_with_the_position():
    with pytest.raises(LangevinError, match="0xe9 at 3"):
        Vocabulary.build("café".encode("latin-1"), "char")


def test_encoding_is_long():
    assert Vocabulary.build(b"ab", "byte").encode(b"abba").dtype == torch.long


@pytest.mark.parametrize(
    ("size", "kind"), [(256, torch.uint8), (257, torch.int16), (32769, torch.int32)]
)
def test_long_texts_are_kept_in_the_smallest_type(size, kind):
    vocabulary = Vocabulary("word", [f"w{number}" for number in range(size)], running=True)
    encoded = vocabulary.encode_text(f"w0 w{size - 1}".encode())
    assert (encoded.dtype, encoded.tolist()) == (kind, [0, size - 1])
    assert vocabulary.encode_text(b"").tolist() == []


@given(
    signs=st.lists(
        st.sampled_from(["é", "a", " ", "\n", "\r\n", "<eos>", "𝄞", "\u2028"]), max_size=40
    )
)
@pytest.mark.parametrize("running", [False, True])
def test_a_text_in_chunks_is_the_text_whole(tmp_path_factory, signs, running):
    """Letters and words that lie across the ends of chunks are neither cut nor joined."""
    raw = "".join(signs).encode()
    path = tmp_path_factory.mktemp("t") / "t.txt"
    path.write_bytes(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "CHUNK", 3)
        letters = "".join(text.letters_of(text.Text(path)))
        words = [word for block in text.words_in(raw, None if running else END) for word in block]
    assert letters.encode() == raw
    lines = letters.removesuffix("\n").split("\n")
    expected = letters.split() if running else [w for line in lines for w in [*line.split(), END]]
    assert words == expected


def test_the_place_of_a_byte_that_is_not_utf8_counts_from_the_beginning(monkeypatch):
    monkeypatch.setattr(text, "CHUNK", 4)
    with pytest.raises(LangevinError, match="0xff at 9"):
        Vocabulary.build(b"abc\xc3\xa9defg\xff", "char")
    with pytest.raises(LangevinError, match="0xc3 at 8"):
        Vocabulary.build(b"abcdefgh\xc3", "word")


def test_a_byte_model_has_all_bytes_and_a_character_model_has_unk():
    every = bytes(range(256))
    vocabulary = Vocabulary.build(b"ab", "byte")
    assert vocabulary.encode(every).tolist() == list(range(256))
    assert Vocabulary.of_seen_bytes(b"abba").tokens == ["a", "b"]
    vocabulary = Vocabulary.build(b"ab", "char")
    assert vocabulary.tokens == ["\n", "a", "b", "<unk>"]
    numbers = vocabulary.encode("a<é".encode())
    assert numbers.tolist() == [1, 3, 3]
    assert vocabulary.decode(numbers).decode() == "a\ufffd\ufffd"
    assert vocabulary.unknown_share(numbers) == pytest.approx(2 / 3)
    with pytest.raises(LangevinError, match="'é'"):
        Vocabulary("char", ["a"]).encode("é".encode())  # an old vocabulary
    with pytest.raises(LangevinError, match=r"expected bytes .* got '<unk>'"):
        Vocabulary("byte", ["a", "<unk>"])


def test_the_paper_s_split_has_the_paper_s_bytes(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("the snow lay deep\n" * 40)
    settings = [f"corpus={path}", "batch_size=2", "window=5"]
    assert len(open_task(load_recipe("text", settings)).vocabulary) == 256
    paper = [*settings, "split=streams", "parts=[20,2,2]"]
    assert len(open_task(load_recipe("text", paper)).vocabulary) == len(set("the snow lay deep\n"))


def test_a_text_is_shown_letter_by_letter():
    vocabulary = Vocabulary.build(b"", "byte")
    shown = vocabulary.pieces(vocabulary.encode("é 𝄞\n\0\u200b".encode() + b"\xa9\xc3"))
    assert shown == ["é", "", " ", "𝄞", "", "", "", "⏎", "␀", r"\u200b", "", "", r"\xa9", r"\xc3"]
    assert vocabulary.token_text(0xC3) == r"\xc3"


def test_words_that_became_unk_stay_at_hand():
    vocabulary = Vocabulary.build(b"the cat sat on the mat\nthe\n", "word", max_size=4)
    spelled = vocabulary.spell("the zebra \x1b[2J the")
    assert spelled.unknown == {2: "zebra", 3: "\x1b[2J"}
    assert vocabulary.pieces(spelled.tokens, spelled.unknown) == [
        "<eos>",
        "the",
        "<unk:zebra>",
        "<unk:␛[2J>",
        "the",
    ]
    assert vocabulary.unknown_share(spelled.tokens) == 0.5
    assert vocabulary.unknown_share(vocabulary.encode(b"\n")) == 0.0


@pytest.mark.parametrize(
    ("level", "tokens", "start"),
    [
        ("byte", ["a", "\n"], 1),
        ("char", ["a", " "], 1),
        ("byte", ["a", "b"], 0),
        ("word", ["a", "<unk>", "<eos>"], 2),
        ("word", ["a", "<unk>"], 1),
        ("word", ["a", "\n"], 0),
    ],
)
def test_where_a_text_starts(level, tokens, start):
    vocabulary = Vocabulary(level, tokens, running=level == "word" and "<eos>" not in tokens)
    assert vocabulary.spell("").tokens.tolist() == [start]
    assert vocabulary.spell("a").tokens.tolist() == [start, tokens.index("a")]


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


@pytest.mark.parametrize("level", ["byte", "char", "word"])
def test_reading_a_long_text_takes_less_than_three_bytes_a_byte(tmp_path, monkeypatch, level):
    monkeypatch.setattr(text, "CHUNK", 2**16)
    path = tmp_path / "t.txt"
    path.write_bytes(b"the snow lay deep on the roofs\n" * 100_000)
    long = text.Text(path)
    short = text.Text(path.read_bytes()[:3100])
    vocabulary = Vocabulary.build(short, level)
    vocabulary.encode_text(short)
    tracemalloc.start()
    try:
        tokens = vocabulary.encode_text(long)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(tokens) == (800_000 if level == "word" else path.stat().st_size)
    tables = 5 * 2**20  # a number for each character of Unicode
    assert most < 1.5 * path.stat().st_size + 2**20 + tables * (level == "char")
