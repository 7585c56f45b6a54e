"""Word vectors from every format, at one scale; unknown words at that scale too."""

import numpy as np
import pytest
import torch

from langevin.data.catalogue import VECTORS
from langevin.data.frozen_vectors import joint_coverage
from langevin.data.vectors import SCALE, load_vectors
from langevin.errors import LangevinError
from langevin.recipe import load_recipe

WORDS = ["the", "Rome", "of a", "snow"]
NUMBERS = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32) * 11


def write(folder, kind):
    if kind == "npy":
        np.save(folder / "v.npy", NUMBERS.astype(np.float16))
        (folder / "v.vocab.tsv").write_text("".join(f"{w}\t{i}\n" for i, w in enumerate(WORDS)))
        return folder / "v.npy"
    rows = "".join(
        f"{w} {' '.join(map(str, row))}\n" for w, row in zip(WORDS, NUMBERS, strict=True)
    )
    if kind == "bin":
        parts = [WORDS[n].encode() + b" " + NUMBERS[n].tobytes() + b"\n" for n in (0, 1, 3)]
        (folder / "v.bin").write_bytes(b"3 6\n" + b"".join(parts))
        return folder / "v.bin"
    (folder / "v.txt").write_text(("4 6\n" if kind == "word2vec" else "") + rows)
    return folder / "v.txt"


@pytest.mark.parametrize("kind", ["npy", "bin", "word2vec", "glove"])
def test_every_format_gives_the_same_vectors_at_the_common_scale(tmp_path, kind):
    vectors = load_vectors(str(write(tmp_path, kind)), ["the", "Rome", "snow", "absent"])
    expected = NUMBERS[[0, 1, 3]]
    expected = expected * SCALE / np.sqrt((expected**2).mean())
    embedded = vectors.embed(["Rome", "the", "snow"], seed=0).numpy()
    np.testing.assert_allclose(embedded, expected[[1, 0, 2]], rtol=2e-3, atol=1e-4)
    assert abs(np.sqrt((vectors.matrix**2).mean()) - SCALE) < 1e-6


def test_words_are_found_exactly_then_in_lower_case(tmp_path):
    vectors = load_vectors(str(write(tmp_path, "glove")), ["The", "rome", "Rome", "of a"])
    made = vectors.embed(["the", "The", "Rome", "rome"], seed=0)
    assert made[0].equal(made[1])
    assert vectors.find("rome") is None
    counts = {"The": 3, "Rome": 1, "rome": 4}
    assert joint_coverage([vectors], counts, counts) == {"types": 2 / 3, "tokens": 0.5}
    assert joint_coverage([vectors], counts, {"Rome"}) == {
        "types": 1 / 3,
        "tokens": 1 / 8,
    }  # a word the model cannot read


def test_unknown_words_are_drawn_at_the_same_scale_and_from_the_seed(tmp_path):
    vectors = load_vectors(str(write(tmp_path, "glove")), WORDS)
    words = ["the", *(f"unknown{n}" for n in range(4000))]
    made = vectors.embed(words, seed=1)
    # the mean square of 24,000 normals has a relative deviation of √(2/24000) = 0.9 %; five of them
    assert abs(made[1:].square().mean() / SCALE**2 - 1) < 5 * (2 / 24_000) ** 0.5
    assert made.equal(vectors.embed(words, seed=1))
    other = vectors.embed(words, seed=2)
    assert made[0].equal(other[0])
    assert not made[1].equal(other[1])


def test_what_cannot_be_used_is_refused(tmp_path):
    with pytest.raises(LangevinError, match=r"found nothing.*glove_6b_100d"):
        load_vectors("glove_7b", ["a"])
    with pytest.raises(LangevinError, match="none of the words"):
        load_vectors(str(write(tmp_path, "glove")), ["xyz"])
    (tmp_path / "v.txt").write_text("4 6\nthe 1 2 3\n")
    with pytest.raises(LangevinError, match="6 numbers in line 2"):
        load_vectors(str(tmp_path / "v.txt"), ["the"])
    path = write(tmp_path, "bin")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LangevinError, match="ends after 2 of 3 words"):
        load_vectors(str(path), ["the"])
    (tmp_path / "v.txt").write_text("the nan 1\nof 1 2\n")
    with pytest.raises(LangevinError, match="finite"):
        load_vectors(str(tmp_path / "v.txt"), ["the"])
    (tmp_path / "v.txt").write_text("")
    with pytest.raises(LangevinError, match="it is empty"):
        load_vectors(str(tmp_path / "v.txt"), ["the"])
    (tmp_path / "w.npy").write_bytes(b"no array")
    (tmp_path / "w.vocab.tsv").write_text("the\t0\n")
    with pytest.raises(LangevinError, match="cannot read word vectors"):
        load_vectors(str(tmp_path / "w.npy"), ["the"])


@pytest.mark.data
@pytest.mark.parametrize("known", VECTORS, ids=lambda known: known.name)
def test_the_shared_sets_come_at_one_scale(real_data, known):
    vectors = load_vectors(known.name, ["film", "city", "Who", "?", "Bogucharovo"])
    assert vectors.dim == (100 if "100d" in known.name else 300)
    assert vectors.find("Bogucharovo") is None
    assert abs(torch.from_numpy(vectors.matrix).square().mean().sqrt() - SCALE) < 1e-6


def test_files_without_an_ending_and_names_beside_a_matrix(tmp_path, monkeypatch):
    plain = write(tmp_path, "glove").rename(tmp_path / "plain")
    assert load_vectors(str(plain), ["Rome"]).rows
    write(tmp_path, "npy")
    monkeypatch.chdir(tmp_path)
    assert load_vectors("v", ["Rome"]).rows


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    path = write(tmp_path, "glove")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert set(load_vectors(str(path), WORDS).rows) == set(WORDS)


def test_a_matrix_that_is_none_and_rows_that_are_not_there(tmp_path):
    path = write(tmp_path, "npy")
    np.save(path, NUMBERS[0])
    with pytest.raises(LangevinError, match="an array of 1 dimensions"):
        load_vectors(str(path), WORDS)
    write(tmp_path, "npy")
    (tmp_path / "v.vocab.tsv").write_text("the\t-1\nRome\t0\n")
    with pytest.raises(LangevinError, match="name row -1, there are 4 rows"):
        load_vectors(str(path), WORDS)


def test_a_run_finds_its_vectors_from_anywhere(tmp_path, monkeypatch):
    path = write(tmp_path, "glove")
    monkeypatch.chdir(tmp_path)
    assert load_recipe("classify", ["vectors=v.txt"]).data.vectors == str(path)
    assert (
        load_recipe("classify", ["vectors=word2vec_googlenews_300d"]).data.vectors
        == "word2vec_googlenews_300d"
    )
