import json

import numpy as np
import pytest
import safetensors.numpy
import torch

from langevin.data import image_features
from langevin.data.image_features import ImageFeatures, read_features
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
    safetensors.numpy.save_file({"features": ROWS}, folder / "f.safetensors", {"names": json.dumps(NAMES)})
    return folder / "f.safetensors"


def write_vectors(folder):
    safetensors.numpy.save_file(dict(zip(NAMES, ROWS, strict=True)), folder / "f.safetensors")
    return folder / "f.safetensors"


@pytest.mark.parametrize("write", [write_npy, write_npz, write_matrix, write_vectors])
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
    with pytest.raises(LangevinError, match="found nothing"):
        read_features(tmp_path / "absent.npy")
    with pytest.raises(LangevinError, match=r"expected features as \.npy"):
        read_features(tmp_path / "f.csv")


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
    assert sampled != ImageFeatures(names, other, "x").sha256()  # the last block is among those hashed
    assert sampled == ImageFeatures(list(names), values.clone(), "y").sha256()
