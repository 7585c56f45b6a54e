"""A picture that was sent → its features. Nothing that a request names is opened."""

from __future__ import annotations

from io import BytesIO

import torch

from ..data.images import read_image
from ..models.resnet import ResNet50
from .problems import Problem


def features_of_picture(sent: bytes, network: ResNet50 | None, pixels: int) -> list[float]:
    """By the network that the server was started with."""
    if network is None:
        raise Problem(422, "the features of a picture", "a picture, and no --extractor here",
                      "send {\"features\": […]}, or start the server with --extractor FILE")  # fmt: skip
    refuse_large(sent, pixels)
    with torch.no_grad():
        found = network(read_image(BytesIO(sent), preprocess=network.preprocess)[None])
    row: list[float] = found[0].tolist()
    return row


def refuse_large(sent: bytes, pixels: int) -> None:
    """By its header, before it is decoded: a small file may be a huge picture."""
    from PIL import Image

    try:
        with Image.open(BytesIO(sent)) as picture:
            width, height = picture.size
    except Exception:  # whatever a decoder stumbles over
        raise Problem(422, "a JPEG or PNG picture", "bytes that are none", "send another") from None
    if width * height > pixels:
        raise Problem(413, f"a picture of at most {pixels:,} pixels", f"{width}×{height}",
                      "make it smaller")  # fmt: skip
