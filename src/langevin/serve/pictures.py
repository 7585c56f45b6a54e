"""A picture that was sent → its features. Nothing that a request names is opened."""

from __future__ import annotations

import warnings
from io import BytesIO

from ..models.extractor import Extractor
from .problems import Problem


def features_of_picture(sent: bytes, extractor: Extractor | None, pixels: int) -> list[float]:
    """By the network that the server was started with, or that made the features of training."""
    if extractor is None:
        raise Problem(422, "the features of a picture", "a picture, and no --extractor here",
                      "send {\"features\": […]}, or start the server with --extractor FILE")  # fmt: skip
    refuse_large(sent, pixels)
    row: list[float] = extractor.features([BytesIO(sent)])[0].half().tolist()
    return row


def refuse_large(sent: bytes, pixels: int) -> None:
    """By its header, before it is decoded: a small file may be a huge picture."""
    from PIL import Image

    def refuse(got: str) -> Problem:
        return Problem(413, f"a picture of at most {pixels:,} pixels", got, "make it smaller")

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a large one, which is refused below
            with Image.open(BytesIO(sent), formats=("JPEG", "PNG")) as picture:
                width, height = picture.size
    except Image.DecompressionBombError:
        raise refuse("far more") from None
    except Exception:  # whatever a decoder stumbles over
        raise Problem(422, "a JPEG or PNG picture", "bytes that are none", "send another") from None
    if width * height > pixels:
        raise refuse(f"{width}×{height}")
