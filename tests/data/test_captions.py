import json

import pytest

from langevin.data.captions import START, build_vocabulary, read_captions, with_marks
from langevin.data.spelling import words_of
from langevin.data.vocabulary import END, UNKNOWN
from langevin.errors import LangevinError
from tests.tiny_captions import write_tiny


def karpathy(folder, key="raw"):
    """The same tiny captions as Karpathy writes them."""
    captions = read_captions(write_tiny(folder))
    kind = {name: split for split, names in captions.splits.items() for name in names}
    images = [
        {
            "filename": name,
            "split": {"valid": "val"}.get(kind[name], kind[name]),
            "sentences": [
                {"raw": text} if key == "raw" else {"tokens": words_of(text, "plain")}
                for text in texts
            ],
        }
        for name, texts in captions.texts.items()
    ]
    images[0]["split"] = "restval"  # his name for images that join the training split
    path = folder / "dataset_tiny.json"
    path.write_text(json.dumps({"images": images, "dataset": "tiny"}))
    return path, captions


def test_words_are_lower_case_letters_and_digits():
    assert words_of("A man 's T-shirt , RED_2 . ", "plain") == ["a", "man", "s", "tshirt", "red2"]
    assert words_of("Ein Mädchen läuft !", "plain") == ["ein", "mädchen", "läuft"]
    assert words_of(" . ", "plain") == []


def test_token_lines_and_lists(tmp_path):
    captions = read_captions(write_tiny(tmp_path))
    assert {split: len(names) for split, names in captions.splits.items()} == {
        "train": 27,
        "valid": 9,
        "test": 9,
    }
    assert captions.texts["dev4.jpg"][0] == "A cat sleeps ."
    assert read_captions(tmp_path) == captions  # the folder does as well


@pytest.mark.parametrize("key", ["raw", "tokens"])
def test_karpathy_s_json_says_the_same(tmp_path, key):
    path, captions = karpathy(tmp_path, key)
    read = read_captions(path)
    assert {name: [words_of(t, "plain") for t in texts] for name, texts in read.texts.items()} == {
        name: [words_of(t, "plain") for t in texts] for name, texts in captions.texts.items()
    }
    assert read.splits == captions.splits
    assert build_vocabulary(read, 2).tokens == build_vocabulary(captions, 2).tokens


def test_vocabulary_has_the_frequent_words_and_three_marks(tmp_path):
    path = write_tiny(tmp_path)
    path.write_text(path.read_text() + "train0.jpg#3\tA zebra .\n")
    captions = read_captions(path)
    vocabulary = build_vocabulary(captions, 2)
    assert vocabulary.tokens[0] == END
    assert vocabulary.tokens[-2:] == [UNKNOWN, START]
    assert "zebra" not in vocabulary.numbers
    assert "zebra" in build_vocabulary(captions, 1).numbers
    assert len(build_vocabulary(captions, 1, 6)) == 6
    numbers = vocabulary.numbers
    encoded = vocabulary.encode_tokens(with_marks("A zebra runs.")).tolist()
    assert encoded == [numbers[t] for t in (START, "a", UNKNOWN, "runs", END)]


def test_a_vocabulary_without_words_is_refused(tmp_path):
    with pytest.raises(LangevinError, match="no word is left: min_count 1000"):
        build_vocabulary(read_captions(write_tiny(tmp_path)), 1000)


def add(path, text):
    path.write_text(path.read_text() + text)


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda f: (f / "tiny.devImages.txt").unlink(),
            "expected the image list of the valid split",
        ),
        (
            lambda f: (f / "tiny.testImages.txt").write_text("other.jpg\n"),
            "1 of 1 images of the test split have no",
        ),
        (
            lambda f: (f / "tiny.testImages.txt").write_text("test0.jpg\ntest0.jpg\n"),
            "'test0.jpg' is listed twice",
        ),
        (lambda f: change(f / "tiny.token.txt", "train1.jpg#0\t", "train1.jpg#0 "), "in line 4 of"),
        (lambda f: (f / "tiny.token.txt").write_bytes(b"a.jpg#0\t\xff\n"), "expected UTF-8"),
        (
            lambda f: (f / "tiny.token.txt").unlink(),
            "which is not there; pass a .*, or one of flickr8k, flickr30k",
        ),
        (
            lambda f: (f / "tiny.testImages.txt").write_bytes(b"caf\xe9.jpg\n"),
            "UTF-8 in .*testImages.txt, got .* 0xe9",
        ),
        (
            lambda f: add(f / "tiny.testImages.txt", "dev3.jpg\n"),
            "got 'dev3.jpg' in both valid and test",
        ),
        (lambda f: (f / "tiny.token.txt").write_text(""), "it is empty"),
    ],
)
def test_bad_caption_files_are_refused(tmp_path, spoil, message):
    path = write_tiny(tmp_path)
    spoil(tmp_path)
    with pytest.raises(LangevinError, match=message):
        read_captions(path)


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(LangevinError, match=r"which is not to be had \(File name too long\)"):
        read_captions(tmp_path / ("x" * 300))


def test_lists_may_begin_with_a_mark_and_names_may_have_spaces(tmp_path):
    path = write_tiny(tmp_path)
    change(path, "test1.jpg#", "my test 1.jpg#")
    listed = tmp_path / "tiny.testImages.txt"
    change(listed, "test1.jpg", "my test 1.jpg")
    listed.write_bytes(b"\xef\xbb\xbf" + listed.read_bytes().replace(b"\n", b"\r\n"))
    captions = read_captions(path)
    assert captions.splits["test"][:3] == ["test0.jpg", "my test 1.jpg", "test2.jpg"]
    assert captions.texts["my test 1.jpg"][0] == "A cat runs ."


def test_an_image_of_two_splits_is_refused(tmp_path):
    path, _ = karpathy(tmp_path)
    images = json.loads(path.read_text())["images"]
    path.write_text(json.dumps({"images": [*images, images[1] | {"split": "test"}]}))
    with pytest.raises(
        LangevinError, match=r"got 'train1.jpg' in both train and test; take it off"
    ):
        read_captions(path)


def test_a_split_that_is_not_named_is_held_out_of_training(tmp_path):
    path, before = karpathy(tmp_path)
    change(path, '"val"', '"train"')
    captions = read_captions(path)
    assert captions.made == ("valid",)
    assert captions.splits["test"] == before.splits["test"]
    assert len(captions.splits["valid"]) == round(0.1 * 36)
    assert {*captions.splits["valid"], *captions.splits["train"]} == {
        *before.splits["valid"],
        *before.splits["train"],
    }


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(LangevinError, match="expected captions in"):
        read_captions(tmp_path)
