"""An image network that transformers opens: pictures → the mean of its last hidden states.

From a folder or transformers' cache. Nothing is fetched, no code of the model's is run, and weights
are safetensors only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..data.images import Picture, read_rgb
from ..data.vectors import file_sha256
from ..errors import LangevinError
from .encoder_files import CONFIG, weights_checksum, find_pretrained, find_weights
from .encoder_loading import load_model, opening

if TYPE_CHECKING:
    from PIL import Image

PROCESSOR = "preprocessor_config.json"
WHAT = "image network"


class ImageNetwork:
    """Its features are the mean over places: of a convolutional network its global average pool."""

    def __init__(self, name: str) -> None:
        from transformers import AutoImageProcessor

        folder = find_pretrained(name, "image networks")
        if folder is None:
            raise LangevinError(
                f"expected an {WHAT} {name!r} as a folder, as ResNet-50 weights (.npz, "
                f".safetensors) or in the cache of transformers, found none; get it with 'hf "
                f"download {name}'"
            )
        weights = find_weights(folder, WHAT)
        if not (folder / PROCESSOR).is_file():
            raise LangevinError(f"expected {PROCESSOR} in {folder}, which says how it wants "
                                f"pictures, found none; get the {WHAT} again")
        with opening(folder, WHAT):
            opener: Any = AutoImageProcessor
            self._processor = opener.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, backend="pil"
            )
        model: Any = load_model(folder, WHAT)
        self._model = getattr(model, "vision_model", model)  # of those that read texts as well
        if self._model.main_input_name != "pixel_values":
            raise LangevinError(f"expected an {WHAT} in {folder}, got {model.config.model_type}; "
                                f"name one such as microsoft/resnet-50")
        self.sha256, self.config_sha256 = weights_checksum(weights), file_sha256(folder / CONFIG)
        self.preprocess = f"{PROCESSOR} {file_sha256(folder / PROCESSOR)}"
        with opening(folder, WHAT):
            self.width = self.features([self._prepare(grey_picture())]).shape[1]

    def read(self, picture: Picture) -> Tensor:
        return self._prepare(read_rgb(picture))

    def _prepare(self, picture: Image.Image) -> Tensor:
        pixels: Tensor = self._processor(images=picture, return_tensors="pt")["pixel_values"][0]
        return pixels

    @torch.no_grad()
    def features(self, pictures: list[Tensor]) -> Tensor:
        """[pictures, width]; at once where they have one shape."""
        if len({picture.shape for picture in pictures}) > 1:
            return torch.cat([self.features([picture]) for picture in pictures])
        states: Tensor = self._model(pixel_values=torch.stack(pictures)).last_hidden_state
        return states.mean((2, 3) if states.dim() == 4 else 1)


def grey_picture() -> Image.Image:
    from PIL import Image

    return Image.new("RGB", (64, 64), "grey")
