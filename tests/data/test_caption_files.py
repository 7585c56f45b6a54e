import json

import pytest

from langevin.data.caption_files import parse_captions
from langevin.data.caption_splits import Shares, complete_splits
from langevin.data.captions import read_captions
from langevin.errors import LangevinError

ROWS = [("a.jpg", "A dog, running", "train"), ("a.jpg", "Dog", "train"), ("b.jpg", "Cat", "val")]
TEXTS = {"a.jpg": ["A dog, running", "Dog"], "b.jpg": ["Cat"]}


def table(path, sign, rows=ROWS, head="image,caption,split"):
    def line(cells):
        return sign.join(f'"{cell}"' if sign in cell else cell for cell in cells)

    path.write_text("\n".join(map(line, [head.split(","), *rows])))
    return path


def parse(path):
    return parse_captions(path, path.read_bytes())


@pytest.mark.parametrize(
    ("name", "sign"), [("c.csv", ","), ("c.csv", ";"), ("c.tsv", "\t"), ("c.txt", ","), ("c.txt", "\t")]
)
def test_tables_by_columns(tmp_path, name, sign):
    """Also by another name: tables of captions are often called captions.txt."""
    found = parse(table(tmp_path / name, sign))
    assert found.texts == TEXTS
    assert found.splits == {"train": ["a.jpg"], "valid": ["b.jpg"]}
    rows = [row[1::-1] for row in ROWS]
    plain = parse(table(tmp_path / name, sign, rows, "Caption,IMAGE"))  # any order, no split
    assert (plain.texts, plain.splits) == (TEXTS, {})


def test_json_lines_by_columns(tmp_path):
    path = tmp_path / "c.jsonl"
    rows = [dict(zip(("image", "caption", "split"), row, strict=True)) for row in ROWS]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert parse(path).texts == TEXTS
    (tmp_path / "c.json").write_text(json.dumps(rows))
    assert parse(tmp_path / "c.json").texts == TEXTS


def test_coco_s_json(tmp_path):
    path = tmp_path / "captions_val2014.json"
    images = [{"id": 7, "file_name": "a.jpg"}, {"id": 9, "file_name": "b.jpg"}]
    notes = [{"image_id": 7, "caption": "A dog, running"}, {"image_id": 9, "caption": "Cat"},
             {"image_id": 7, "caption": "Dog"}]  # fmt: skip
    path.write_text(json.dumps({"info": {}, "images": images, "annotations": notes}))
    found = parse(path)
    assert (found.texts, found.splits) == (TEXTS, {})


BAD_JSON = [
    "{", "3", "null", '{"images": 3}', '{"images": [{"filename": "a"}]}', "[" * 100_000,
    '{"images": [], "annotations": [{"image_id": 1, "caption": "x"}]}',
    '{"images": [{"id": 1, "file_name": 2}], "annotations": []}',
    '{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "caption": 5}]}',
    '{"images": [{"filename": "a", "split": [], "sentences": []}]}',
    '{"images": [{"filename": "a", "split": "val", "sentences": ["x"]}]}',
    '{"images": [{"filename": "\\ud800", "split": "val", "sentences": [{"raw": "x"}]}]}',
]  # fmt: skip


@pytest.mark.parametrize("content", BAD_JSON)
def test_json_of_another_shape_is_refused(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(LangevinError, match=r"expected|nested too deep|is not valid JSON") as told:
        read_captions(path)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("picture,caption\na.jpg,x", "the columns are 'picture', 'caption'; rename"),
        ("image,caption\n,x", "expected the name of an image in row 1"),
        ("image,caption,split\na.jpg,x,extra", "got 'extra'; mend it"),
        ("image,caption,split\na.jpg,x,train\na.jpg,y,test", "got train and test; mend row 2"),
        ("image,caption,split\na.jpg,x,train\nb.jpg,y,", "1 of 2 have none, first 'b.jpg'"),
        ("image,caption\na.jpg,x,y", "more cells than the first line"),
        ("image,caption\n", "expected captions in .*, found none"),
        ("image,caption,split\na.jpg,x,test\nb.jpg,x,val", "expected images of the train split"),
        ("image,caption\na.jpg,x\nb.jpg,y", "expected at least 3 images"),
        ("image,caption\na.jpg,.\nb.jpg,y\nc.jpg,z", "1 of 3 images .* have no caption"),
    ],
)
def test_bad_tables_are_refused(tmp_path, content, message):
    path = tmp_path / "c.csv"
    path.write_text(content)
    with pytest.raises(LangevinError, match=message):
        read_captions(path)


def test_splits_are_of_names_alone():
    """The same images are held out whatever stands beside them, in whatever order."""
    names = [f"{number}.jpg" for number in range(200)]
    found = complete_splits(dict.fromkeys(names, ()), {}, Shares(), "")
    assert {split: len(images) for split, images in found.items()} == {
        "train": 160, "valid": 20, "test": 20,
    }  # fmt: skip
    assert found["test"][:2] == ["6.jpg", "12.jpg"]
    turned = complete_splits(dict.fromkeys(names[::-1], ()), {}, Shares(), "")
    assert set(turned["test"]) == set(found["test"])
    again = complete_splits(dict.fromkeys(names, ()), {"train": names[20:], "test": names[:20]},
                            Shares(valid=0.05), "")  # fmt: skip
    assert (len(again["valid"]), again["test"]) == (9, names[:20])
