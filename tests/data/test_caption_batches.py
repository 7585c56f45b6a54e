import shutil

import numpy as np
import pytest
import torch

from langevin.data.caption_batches import CaptionSet, images_with_features, joint_sha256
from langevin.data.captions import build_vocabulary, open_captions, open_features, with_marks
from langevin.data.catalogue import DATASETS, DataSet, File
from langevin.errors import LangevinError
from tests.tiny_captions import write_tiny


def open_both(corpus, features=None):
    return open_captions(corpus), open_features(corpus, features)


def test_captions_become_one_matrix_in_order(tmp_path):
    captions, features = open_both(str(write_tiny(tmp_path)))
    vocabulary = build_vocabulary(captions, 1)
    names = ["train3.jpg", "train1.jpg"]
    made = CaptionSet.build(names, captions, features, vocabulary)
    texts = [text for name in names for text in captions.texts[name]]
    assert made.lengths.tolist() == [4, 10, 3] * 2
    assert made.images.tolist() == [3] * 3 + [1] * 3
    for row, text in zip(made.tokens, texts, strict=True):
        tokens = vocabulary.encode_tokens(with_marks(text)).tolist()
        assert row[: len(tokens)].tolist() == tokens
    batch = made.take(torch.tensor([2, 0]))
    assert batch.inputs.shape == (2, 4)
    assert batch.targets[1].tolist() == vocabulary.encode_tokens(with_marks(texts[0])).tolist()[1:]
    assert batch.real.tolist() == [[True] * 3 + [False], [True] * 4]
    assert (batch.inputs[:, 1:] == batch.targets[:, :-1]).all()


def test_images_without_features_are_counted(tmp_path):
    path = write_tiny(tmp_path)
    np.save(tmp_path / "features.npy", np.load(tmp_path / "features.npy")[2:])
    names = (tmp_path / "features_names.txt").read_text().split()[2:]
    (tmp_path / "features_names.txt").write_text("\n".join(names))
    captions, features = open_both(str(path))
    with pytest.raises(
        LangevinError, match=r"2 of 27 images of the train split have no features.*'train0.jpg'"
    ):
        images_with_features(captions, features, allow_missing=False)
    kept = images_with_features(captions, features, allow_missing=True)
    assert {split: len(names) for split, names in kept.items()} == {
        "train": 25,
        "valid": 9,
        "test": 9,
    }


def test_features_must_be_found(tmp_path):
    path = write_tiny(tmp_path)
    shutil.copy(tmp_path / "features.npy", tmp_path / "more.npy")
    with pytest.raises(LangevinError, match="found 2; name it by --features"):
        open_both(str(path))
    captions, features = open_both(str(path), str(tmp_path / "features.npy"))
    assert joint_sha256(captions, features) != joint_sha256(captions, open_other(tmp_path))
    with pytest.raises(LangevinError, match="ptb has no captions"):
        open_both("ptb")


def open_other(folder):
    np.save(folder / "features.npy", np.load(folder / "features.npy") + 1)
    return open_features(str(folder / "tiny.token.txt"), str(folder / "features.npy"))


def test_a_known_set_with_json_and_features_of_one_s_own(tmp_path, monkeypatch):
    from tests.data.test_captions import karpathy

    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    with pytest.raises(
        LangevinError, match=r"flickr30k is not there.*dataset_flickr30k.json \(29,000"
    ):
        open_both("flickr30k")
    folder = tmp_path / "flickr30k"
    folder.mkdir()
    path, captions = karpathy(folder)
    path.rename(folder / "dataset_flickr30k.json")
    (folder / "features.npy").rename(folder / "resnet50_pool5_f16.npy")
    (folder / "features_names.txt").rename(folder / "resnet50_names.txt")
    assert DATASETS["flickr30k"].state()["state"] == "found"
    read, features = open_both("flickr30k")
    assert read.splits == captions.splits
    assert features.values.shape == (45, 12)


@pytest.fixture
def flickr30k(tmp_path, monkeypatch):
    """Token lines with three lists, and features under names of their own."""
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    folder = tmp_path / "flickr30k"
    folder.mkdir()
    write_tiny(folder).rename(folder / "results_20130124.token")
    for split, name in {"train": "train", "dev": "val", "test": "test"}.items():
        (folder / f"tiny.{split}Images.txt").rename(folder / f"{name}.txt")
    return folder


def test_a_known_set_as_token_lines_with_features_beside(flickr30k):
    captions, features = open_both("flickr30k")
    assert {split: len(names) for split, names in captions.splits.items()} == {
        "train": 27,
        "valid": 9,
        "test": 9,
    }
    assert features.source == str(flickr30k / "features.npy")
    assert DATASETS["flickr30k"].state()["state"] == "found"
    assert (
        images_with_features(captions, features, allow_missing=False)["test"]
        == captions.splits["test"]
    )
    (flickr30k / "features.npy").rename(flickr30k / "resnet50_pool5_f16.npy")
    (flickr30k / "features_names.txt").rename(flickr30k / "resnet50_names.txt")
    shutil.copy(flickr30k / "resnet50_pool5_f16.npy", flickr30k / "others.npy")
    assert open_features("flickr30k", None).source == str(flickr30k / "resnet50_pool5_f16.npy")


def test_token_lines_of_a_known_set_need_lists_and_features(flickr30k):
    shutil.copy(flickr30k / "features.npy", flickr30k / "more.npy")
    with pytest.raises(LangevinError, match="found 2; name it by --features"):
        open_both("flickr30k")
    (flickr30k / "more.npy").unlink()
    (flickr30k / "features.npy").unlink()
    assert DATASETS["flickr30k"].state()["state"] == "missing"
    with pytest.raises(
        LangevinError, match=r"flickr30k is not there: looked for .*resnet50_pool5_f16.npy"
    ):
        open_both("flickr30k")
    (flickr30k / "val.txt").unlink()
    with pytest.raises(LangevinError, match="expected the image list of the valid split"):
        open_both("flickr30k")


def test_lists_of_a_known_set_are_read_like_others(tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    folder = tmp_path / "tiny"
    folder.mkdir()
    write_tiny(folder)
    names = {
        "captions": "tiny.token.txt",
        "train": "tiny.trainImages.txt",
        "valid": "tiny.devImages.txt",
        "test": "tiny.testImages.txt",
        "names": "features_names.txt",
        "features": "features.npy",
    }
    files = {key: File(name, 0, "", "") for key, name in names.items()}
    monkeypatch.setitem(DATASETS, "tiny", DataSet("tiny", "", "", "", files))
    assert len(open_captions("tiny").splits["test"]) == 9
    (folder / "tiny.testImages.txt").write_bytes(b"\xe9.jpg\n")
    with pytest.raises(
        LangevinError, match=r"expected UTF-8 in .*tiny.testImages.txt, got the byte 0xe9 at 0"
    ):
        open_both("tiny")


def test_an_unknown_corpus_is_told_the_known_ones():
    with pytest.raises(
        LangevinError, match=r"at flickr9k, which is not there; .* one of flickr8k, flickr30k"
    ):
        open_both("flickr9k")


@pytest.mark.data
def test_flickr8k_is_the_official_one(real_data):
    captions, features = open_both("flickr8k")
    assert {split: len(names) for split, names in captions.splits.items()} == {
        "train": 6000,
        "valid": 1000,
        "test": 1000,
    }
    assert features.values.shape == (8091, 2048)
    vocabulary = build_vocabulary(captions, 5)
    assert len(vocabulary) == 2537 + 3
    images = images_with_features(captions, features, allow_missing=False)
    train = CaptionSet.build(images["train"], captions, features, vocabulary)
    assert (len(train), train.words) == (30_000, 353_639)
