"""A picture file → the [3, 224, 224] tensor that a convolutional network was trained to read."""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import LangevinError
from ..files import expect_file

if TYPE_CHECKING:
    from PIL import Image

Picture = Path | BytesIO | NDArray[np.uint8]
"""A file, the bytes of one, or decoded: [height, width, 3] or, grey, [height, width]."""
SIZE = 224
CAFFE_MEAN = (103.939, 116.779, 123.68)  # blue, green, red
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # red, green, blue
WIDEST = 100
"""Long side over short side; beyond it a picture brought to a short side of 256 would not fit into
memory."""
MOST_PIXELS = 120_000_000
"""Of a picture: decoded it takes some bytes for each, however small its file is."""


def read_image(path: Picture, *, preprocess: str = "caffe") -> Tensor:
    """One picture as float32 [3, 224, 224].

    "caffe": squashed to 224×224 (bicubic), blue-green-red, 0..255 minus the channel means, no
    scaling. "torchvision": short side to 256 (bilinear), middle 224×224, red-green-blue, 0..1,
    ImageNet's mean and deviation.

    Pictures are seen as a viewer shows them: turned upright by their EXIF orientation, the first
    frame of several, transparent parts on white. Grey, CMYK and palette pictures become
    red-green-blue; 16-bit ones keep their upper 8.
    """
    check_preprocess(preprocess)
    picture = read_rgb(path)
    if preprocess == "caffe":
        pixels = _pixels(picture.resize((SIZE, SIZE), _filter("BICUBIC")))
        return (pixels.flip(2) - torch.tensor(CAFFE_MEAN)).permute(2, 0, 1).contiguous()
    pixels = _pixels(_middle(picture, path)) / 255
    pixels = (pixels - torch.tensor(IMAGENET_MEAN)) / torch.tensor(IMAGENET_STD)
    return pixels.permute(2, 0, 1).contiguous()


def check_preprocess(preprocess: str) -> None:
    if preprocess not in ("caffe", "torchvision"):
        raise LangevinError(
            f'expected preprocess "caffe" (the original network, and Keras) or "torchvision", got '
            f'"{preprocess}"; name the one that the weights of the extractor come from'
        )


def read_rgb(path: Picture) -> Image.Image:
    """The whole picture decoded, upright, red-green-blue."""
    expect_pillow()
    from PIL import Image, ImageOps, UnidentifiedImageError

    if isinstance(path, np.ndarray):
        return of_array(path)
    if isinstance(path, Path):
        expect_file(path, "a picture, got", "pass a JPEG or PNG file")
    shown = name_of_picture(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # large, or with odd metadata: no reason not to read it
            with Image.open(path) as file:
                refuse_gigantic(file.size)
                file.load()
                return _to_rgb(ImageOps.exif_transpose(file))
    except UnidentifiedImageError as error:
        raise LangevinError(
            f"{shown} is not a picture that Pillow can read; pass a JPEG or PNG file"
        ) from error
    except Exception as error:  # decoders raise whatever a damaged file makes them stumble over
        raise LangevinError(
            f"cannot read the picture {shown}: {error}; it may be damaged, save it anew or smaller"
        ) from error


def expect_pillow() -> None:
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise LangevinError(
            f'reading pictures needs Pillow ({error}); pip install "langevin[caption]"'
        ) from error


def refuse_gigantic(size: tuple[int, int]) -> None:
    """By its header, before it is decoded."""
    width, height = size
    if width * height > MOST_PIXELS:
        raise ValueError(f"it has {width}×{height} pixels, expected at most {MOST_PIXELS:,} in all")


def of_array(pixels: NDArray[np.uint8]) -> Image.Image:
    """A decoded picture; of any other shape or kind it is none."""
    from PIL import Image

    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,)):
        raise LangevinError(
            f"expected a picture [height, width, 3] of whole numbers 0 to 255 (uint8), got "
            f"{pixels.dtype} of shape {list(pixels.shape)}; convert it"
        )
    if not pixels.size:
        raise LangevinError("expected a picture with pixels, got none; pass another")
    return Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")


def name_of_picture(path: Picture) -> str:
    return str(path) if isinstance(path, Path) else "what was sent"


def _to_rgb(picture: Image.Image) -> Image.Image:
    from PIL import Image

    if picture.mode == "F":
        raise ValueError(
            "its pixels are floating-point numbers of unknown range, expected 8 or 16 bits"
        )
    if picture.mode.startswith("I"):
        # 16 bits, in 32 for some formats; Pillow's own conversion cuts at 255
        upper = (np.asarray(picture).clip(0, 65535) // 257).astype(np.uint8)
        return Image.fromarray(upper).convert("RGB")
    if "A" in picture.mode or "a" in picture.mode or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(white, picture).convert("RGB")
    return picture.convert("RGB")


def _middle(picture: Image.Image, path: Picture) -> Image.Image:
    width, height = picture.size
    short, long = sorted((width, height))
    if long > WIDEST * short:
        raise LangevinError(
            f"expected sides of at most {WIDEST} to 1, got {width}×{height} in "
            f"{name_of_picture(path)}; crop it"
        )
    size = (256, int(256 * height / width)) if width <= height else (int(256 * width / height), 256)
    picture = picture.resize(size, _filter("BILINEAR"))
    left, top = round((size[0] - SIZE) / 2), round((size[1] - SIZE) / 2)
    return picture.crop((left, top, left + SIZE, top + SIZE))


def _filter(name: str) -> Image.Resampling:
    from PIL import Image

    return Image.Resampling[name]


def _pixels(picture: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(picture, dtype=np.float32))
