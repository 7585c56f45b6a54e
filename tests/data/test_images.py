"""Pictures of every kind become the tensor of a network; what is no picture is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from langevin.data.images import CAFFE_MEAN, IMAGENET_MEAN, IMAGENET_STD, read_image, read_rgb
from langevin.errors import LangevinError

Image = pytest.importorskip("PIL.Image")

COLOUR = (200, 100, 50)


def colours(path, preprocess="caffe") -> list[float]:
    """The mean colour, as red, green, blue between 0 and 255."""
    tensor = read_image(path, preprocess=preprocess)
    assert tensor.shape == (3, 224, 224)
    assert tensor.dtype == torch.float32
    mean = tensor.mean((1, 2))
    if preprocess == "caffe":
        return (mean + torch.tensor(CAFFE_MEAN)).flip(0).tolist()
    return (255 * (mean * torch.tensor(IMAGENET_STD) + torch.tensor(IMAGENET_MEAN))).tolist()


@pytest.mark.parametrize("preprocess", ["caffe", "torchvision"])
@pytest.mark.parametrize("size", [(1, 1), (5, 450), (640, 480), (224, 224), (2, 150)])
def test_one_colour_in_any_size(tmp_path, size, preprocess):
    Image.new("RGB", size, COLOUR).save(tmp_path / "x.png")
    assert colours(tmp_path / "x.png", preprocess) == pytest.approx(COLOUR, abs=0.01)
    if preprocess == "caffe":  # by hand: blue first
        pixel = read_image(tmp_path / "x.png")[:, 0, 0].tolist()
        assert pixel == pytest.approx([50 - 103.939, 100 - 116.779, 200 - 123.68])


def test_caffe_squashes_and_torchvision_takes_the_middle(tmp_path):
    picture = Image.new("RGB", (900, 300), "red")
    picture.paste("lime", (300, 0, 600, 300))
    picture.save(tmp_path / "x.png")
    assert colours(tmp_path / "x.png") == pytest.approx([170, 85, 0], abs=1)
    assert colours(tmp_path / "x.png", "torchvision") == pytest.approx([0, 255, 0], abs=0.01)


def test_orientation_of_rows_and_columns(tmp_path):
    picture = Image.new("RGB", (100, 100), "black")
    picture.paste("white", (0, 0, 100, 50))
    picture.save(tmp_path / "x.png")
    tensor = read_image(tmp_path / "x.png")
    assert tensor[:, :100].min() > 100  # the upper half is white
    assert tensor[:, 124:].max() < -100


@pytest.mark.parametrize(
    ("mode", "fill", "name", "expected"),
    [
        ("L", 120, "grey.png", (120, 120, 120)),
        ("L", 120, "grey.jpg", (120, 120, 120)),
        ("1", 1, "bit.png", (255, 255, 255)),
        ("CMYK", (0, 255, 255, 0), "x.jpg", (254, 0, 0)),
        ("CMYK", (0, 255, 255, 0), "x.tif", (255, 0, 0)),
        ("P", 7, "palette.png", None),
        ("RGBA", (*COLOUR, 255), "solid.png", COLOUR),
        ("RGBA", (*COLOUR, 0), "clear.png", (255, 255, 255)),
        ("RGBA", (0, 0, 0, 51), "faint.png", (204, 204, 204)),
        ("LA", (40, 255), "greyalpha.png", (40, 40, 40)),
        ("I;16", 120 * 257, "deep.png", (120, 120, 120)),
        ("I;16", 120 * 257, "deep.tif", (120, 120, 120)),
        ("I;16", 120 * 257, "deep.pgm", (120, 120, 120)),
        ("I", 120 * 257, "deep32.tif", (120, 120, 120)),
    ],
)
def test_every_kind_of_pixel(tmp_path, mode, fill, name, expected):
    picture = Image.new(mode, (30, 20), fill)
    if mode == "P":
        picture.putpalette(
            [value for colour in range(256) for value in (colour, 2 * colour % 256, 9)]
        )
        expected = (7, 14, 9)
    picture.save(tmp_path / name)
    assert colours(tmp_path / name) == pytest.approx(expected, abs=1.5)


def test_a_palette_with_a_transparent_colour(tmp_path):
    picture = Image.new("P", (8, 8), 3)
    picture.putpalette([0, 0, 0] * 256)
    picture.save(tmp_path / "x.gif", transparency=3)
    assert colours(tmp_path / "x.gif") == pytest.approx([255, 255, 255])


def test_exif_orientation_is_followed(tmp_path):
    picture = Image.new("RGB", (80, 40), "black")
    picture.paste(
        "white", (0, 0, 40, 40)
    )  # white on the left; turned by 90° clockwise it is at the top
    exif = Image.Exif()
    exif[274] = 6
    picture.save(tmp_path / "x.jpg", exif=exif, quality=95)
    assert read_rgb(tmp_path / "x.jpg").size == (40, 80)
    tensor = read_image(tmp_path / "x.jpg")
    assert tensor[:, :100].mean() > 100
    assert tensor[:, 124:].mean() < -80


def test_what_is_no_picture_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "whole.png")
    whole = (tmp_path / "whole.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "broken.png").write_bytes(whole[:60] + bytes(200) + whole[260:])
    Image.new("RGB", (300, 300), COLOUR).save(tmp_path / "whole.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:700])
    (tmp_path / "text.jpg").write_text("no picture")
    (tmp_path / "empty.jpg").write_bytes(b"")
    Image.new("F", (4, 4), 0.5).save(tmp_path / "float.tif")
    for name, words in [
        ("cut.png", "cannot read the picture"),
        ("broken.png", "cannot read the picture"),
        ("cut.jpg", "truncated"),
        ("text.jpg", "not a picture"),
        ("empty.jpg", "not a picture"),
        ("float.tif", "floating-point"),
        (".", "a folder"),
        ("nowhere.jpg", "not there"),
        ("x" * 300 + ".jpg", "File name too long"),
    ]:
        with pytest.raises(LangevinError, match=words):
            read_image(tmp_path / name)


def test_absurd_pictures_and_options_are_refused(tmp_path, monkeypatch):
    Image.new("RGB", (1, 5000)).save(tmp_path / "line.png")
    assert read_image(tmp_path / "line.png").shape == (3, 224, 224)
    with pytest.raises(LangevinError, match="1×5000"):
        read_image(tmp_path / "line.png", preprocess="torchvision")
    with pytest.raises(
        LangevinError, match=r'"caffe" .* or "torchvision", got "keras"; name the one'
    ):
        read_image(tmp_path / "line.png", preprocess="keras")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(LangevinError, match="decompression bomb"):
        read_image(tmp_path / "line.png")


def test_without_pillow_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(LangevinError, match=r'pip install "langevin\[caption\]"'):
        read_image(tmp_path / "x.png")
