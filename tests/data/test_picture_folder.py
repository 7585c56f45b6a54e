import pytest

from langevin.data.picture_folder import find_pictures
from langevin.errors import LangevinError


@pytest.fixture
def folder(tmp_path):
    for place in ("a.jpg", "val/b.png", "val/c.jpg", "train/c.jpg", "notes.txt", ".hidden.jpg"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a.jpg", "a.jpg"), ("b.png", "val/b.png"), ("images/b.png", "val/b.png"),
        ("b", "val/b.png"), ("train/c.jpg", "train/c.jpg"), ("./a.jpg", "a.jpg"),
    ],
)  # fmt: skip
def test_a_picture_is_found_by_its_name(folder, name, place):
    assert find_pictures(folder, [name]).paths == {name: folder / place}


def test_what_could_be_two_pictures_is_none(folder):
    found = find_pictures(folder, ["a.jpg", "c.jpg", "d.jpg"], ["b"])
    assert found.missing == ("c.jpg", "d.jpg")
    assert found.problem.startswith("2 of 3 images with captions have no picture, first 'c.jpg'")


def test_pictures_that_nobody_names_are_told(folder):
    found = find_pictures(folder, ["a.jpg", "train/c.jpg"], ["b.png"])
    assert (found.missing, found.unnamed) == ((), ("val/c.jpg",))
    assert find_pictures(folder, ["a.jpg"], ["a.jpg"]).unnamed == (
        "train/c.jpg", "val/b.png", "val/c.jpg",
    )  # fmt: skip


def test_a_folder_without_pictures_is_refused(tmp_path):
    with pytest.raises(LangevinError, match=r"expected pictures in .*, found none"):
        find_pictures(tmp_path, ["a.jpg"])
    with pytest.raises(LangevinError, match=r"expected a folder of pictures at .*, found nothing"):
        find_pictures(tmp_path / "no", ["a.jpg"])
