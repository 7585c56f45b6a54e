import json

import numpy as np
import pytest
import safetensors.numpy
import torch

from langevin.data import features as image_features
from langevin.data.features import ImageFeatures, features_from_bytes, read_features
from langevin.errors import LangevinError

ROWS = np.arange(12, dtype=np.float16).reshape(3, 4)
NAMES = ["a.jpg", "b.jpg", "c.jpg"]


def write_npy(folder, rows=ROWS, names=NAMES):
    np.save(folder / "f.npy", rows)
    (folder / "f_names.txt").write_text("\n".join(names) + "\n")
    return folder / "f.npy"


def write_npz(folder):
    np.savez(folder / "f.npz", features=ROWS, names=np.array(NAMES))
    return folder / "f.npz"


def write_matrix(folder):
    safetensors.numpy.save_file(
        {"features": ROWS}, folder / "f.safetensors", {"names": json.dumps(NAMES)}
    )
    return folder / "f.safetensors"


@pytest.mark.parametrize("write", [write_npy, write_npz, write_matrix])
def test_every_format_gives_the_same(tmp_path, write):
    features = read_features(write(tmp_path))
    assert features.names == NAMES
    taken = features.take(torch.tensor([2, 0]))
    assert taken.dtype == torch.float32
    assert taken.tolist() == ROWS[[2, 0]].tolist()
    assert (features.width, features.missing(["b.jpg", "z.jpg"])) == (4, ["z.jpg"])


def test_a_single_vector_is_one_row_and_names_may_be_waived(tmp_path):
    np.save(tmp_path / "one.npy", ROWS[0].astype(np.float64))
    features = read_features(tmp_path / "one.npy", named=False)
    assert (features.names, features.values.shape) == (["row 0"], (1, 4))
    with pytest.raises(LangevinError, match=r"have no names: put .* one_names.txt"):
        read_features(tmp_path / "one.npy")


def test_big_endian_numbers_are_read(tmp_path):
    assert read_features(write_npy(tmp_path, ROWS.astype(">f4"))).values.tolist() == ROWS.tolist()


def test_bad_features_are_refused(tmp_path):
    def refused(message, rows=ROWS, names=NAMES):
        with pytest.raises(LangevinError, match=message):
            read_features(write_npy(tmp_path, rows, names))

    refused("3 rows but 2 names", names=NAMES[:2])
    refused("'a.jpg' has more than one row", names=["a.jpg", "b.jpg", "a.jpg"])
    refused(
        r"1 of 3 rows .* too large for float32, first row 2 \('c.jpg'\)",
        rows=np.diag([1, 2, 1e300]),
    )
    refused("got torch.int64", rows=ROWS.astype(np.int64))
    refused(r"shape \[3, 2, 2\]", rows=ROWS.reshape(3, 2, 2))
    holes = ROWS.copy()
    holes[1, 2], holes[2, 0] = np.nan, np.inf
    refused(r"2 of 3 rows .* are not finite, first row 1 \('b.jpg'\)", rows=holes)
    with pytest.raises(LangevinError, match=r"takes 2048 features an image, .* has 4"):
        read_features(write_npy(tmp_path)).expect_width(2048)


def test_files_that_hold_no_features_are_refused(tmp_path):
    for name in ("f.npy", "f.npz", "f.safetensors"):
        (tmp_path / name).write_bytes(b"not an array at all, only some text")
        with pytest.raises(LangevinError, match="cannot be read as image features"):
            read_features(tmp_path / name)
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(LangevinError, match="cannot be read as image features"):
        read_features(tmp_path / "p.npy")
    np.savez(tmp_path / "two.npz", a=ROWS, b=ROWS)
    with pytest.raises(LangevinError, match="expected one array of features"):
        read_features(tmp_path / "two.npz")
    safetensors.numpy.save_file(dict(zip(NAMES, ROWS, strict=True)), tmp_path / "v.safetensors")
    with pytest.raises(
        LangevinError,
        match=r"expected one matrix of features, got tensors of \[\[4\], \[4\], \[4\]\]",
    ):
        read_features(tmp_path / "v.safetensors")
    for name, words in {
        "absent.npy": "which is not there",
        "x" * 300 + ".npy": "File name too long",
    }.items():
        with pytest.raises(LangevinError, match=words):
            read_features(tmp_path / name)
    with pytest.raises(LangevinError, match=r"expected features as \.npy"):
        read_features(tmp_path / "f.csv")


def test_truncated_files_are_refused(tmp_path):
    for write in (write_npy, write_npz, write_matrix):
        path = write(tmp_path)
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(LangevinError, match="cannot be read as image features"):
            read_features(path)
    compressed = tmp_path / "c.npz"
    np.savez_compressed(compressed, features=np.arange(1000.0).reshape(10, 100))
    raw = bytearray(compressed.read_bytes())
    raw[200:260] = b"x" * 60
    compressed.write_bytes(raw)
    with pytest.raises(LangevinError, match=r"c.npz cannot be read as image features"):
        read_features(compressed, named=False)


def test_contents_are_refused_like_files(tmp_path):
    raw, names = write_npy(tmp_path).read_bytes(), "\n".join(NAMES).encode()
    assert features_from_bytes(raw, names, "f.npy").names == NAMES
    with pytest.raises(LangevinError, match=r"f.npy cannot be read as image features"):
        features_from_bytes(raw[:-9], names, "f.npy")
    with pytest.raises(
        LangevinError, match=r"expected UTF-8 in the names of f.npy, got the byte 0xe9 at 0"
    ):
        features_from_bytes(raw, b"\xe9.jpg\nb.jpg\nc.jpg", "f.npy")


@pytest.mark.parametrize("names", ["{", '{"a": 1}', '"abc"', "[1, 2, 3]", "null"])
def test_names_in_the_metadata_must_be_a_list_of_strings(tmp_path, names):
    safetensors.numpy.save_file({"features": ROWS}, tmp_path / "f.safetensors", {"names": names})
    with pytest.raises(
        LangevinError, match=r"f.safetensors cannot be read .* a JSON list of strings, got"
    ):
        read_features(tmp_path / "f.safetensors")


def test_files_of_names_may_begin_with_a_mark_and_names_have_spaces(tmp_path):
    path = write_npy(tmp_path, names=["my a.jpg", "b.jpg", "c.jpg"])
    names = tmp_path / "f_names.txt"
    names.write_bytes(b"\xef\xbb\xbf" + names.read_bytes())
    assert read_features(path).names == ["my a.jpg", "b.jpg", "c.jpg"]


def test_a_long_name_has_no_names_beside_it(tmp_path):
    """The names would be in a file of a longer name still, which the system will not look for."""
    path = tmp_path / ("x" * 250 + ".npy")
    np.save(path, ROWS)
    assert read_features(path, named=False).names == ["row 0", "row 1", "row 2"]


def test_bad_files_of_names_are_refused(tmp_path):
    path, names = write_npy(tmp_path), tmp_path / "f_names.txt"
    with pytest.raises(
        LangevinError, match=r"expected image names at .*absent.txt, got no file that can be read"
    ):
        read_features(path, tmp_path / "absent.txt")
    names.write_bytes("caf\xe9.jpg\nb.jpg\nc.jpg".encode("latin-1"))
    for given in (None, names):
        with pytest.raises(
            LangevinError, match=r"expected UTF-8 in .*f_names.txt, got the byte 0xe9 at 3"
        ):
            read_features(path, given)
    names.write_text("\n")
    with pytest.raises(LangevinError, match="3 rows but 0 names"):
        read_features(path, named=False)


@pytest.mark.parametrize("write", [write_npz, write_matrix])
def test_names_given_beside_those_in_the_file_are_refused(tmp_path, write):
    names = tmp_path / "mine.txt"
    names.write_text("x.jpg\ny.jpg\nz.jpg\n")
    with pytest.raises(
        LangevinError, match=r"expected no names beside those .* carries, got .*mine.txt"
    ):
        read_features(write(tmp_path), names)
    assert read_features(write_npy(tmp_path), names).names == ["x.jpg", "y.jpg", "z.jpg"]


def test_names_of_other_features_are_not_taken_where_none_are_needed(tmp_path):
    (tmp_path / "all_names.txt").write_text("\n".join(NAMES))
    np.save(tmp_path / "mine.npy", ROWS[0])
    np.save(tmp_path / "whole.npy", ROWS)
    assert read_features(tmp_path / "mine.npy", named=False).names == ["row 0"]
    assert read_features(tmp_path / "whole.npy", named=False).names == NAMES
    with pytest.raises(LangevinError, match="1 rows but 3 names"):
        read_features(tmp_path / "mine.npy")
    (tmp_path / "mine_names.txt").write_text("a.jpg\nb.jpg")
    with pytest.raises(LangevinError, match="1 rows but 2 names"):
        read_features(tmp_path / "mine.npy", named=False)


def test_a_single_number_is_one_row_of_one(tmp_path):
    np.save(tmp_path / "one.npy", np.float32(3))
    assert read_features(tmp_path / "one.npy", named=False).values.tolist() == [[3.0]]


def test_the_hash_sees_numbers_names_and_large_files(monkeypatch):
    values = torch.randn(64, 8)
    names = [f"{i}" for i in range(64)]
    first = ImageFeatures(names, values, "x").sha256()
    other = values.clone()
    other[-1, -1] += 1
    assert ImageFeatures(names, other, "x").sha256() != first
    assert ImageFeatures([*names[1:], names[0]], values, "x").sha256() != first
    monkeypatch.setattr(image_features, "HASHED_WHOLE", 100)
    monkeypatch.setattr(image_features, "BLOCK", 16)
    sampled = ImageFeatures(names, values, "x").sha256()
    assert (
        sampled != ImageFeatures(names, other, "x").sha256()
    )  # the last block is among those hashed
    assert sampled == ImageFeatures(list(names), values.clone(), "y").sha256()
