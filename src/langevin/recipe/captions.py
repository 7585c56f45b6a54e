"""The data table of image captioning."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from .base import Table
from .sentences import whole_path


STEPS, FEWEST_EPOCHS, MOST_EPOCHS = 1200, 5, 40
"""Of training, where the recipe leaves epochs out."""


def epochs_of_captions(captions: int, batch_size: int) -> int:
    """Passes over so many training captions: fewer captions are passed over more often."""
    batches = max(1, captions // batch_size)
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(STEPS / batches)))


class CaptionData(Table):
    """Which captions and pictures, or features of these, their splits, vocabulary, and batches."""

    corpus: str = Field(
        "flickr8k", description="a data set by name, or captions: CSV or TSV with the columns "
        "image, caption and split (if known), COCO's or Karpathy's JSON, token lines"
    )
    images: str | None = Field(None, description="folder of the pictures that the captions name")
    features: str | None = Field(
        None, description="of images, instead of pictures: .npy, .npz, .safetensors"
    )
    extractor: str | None = Field(
        None, description="makes features of pictures: ResNet-50 weights, or an image network of "
        "transformers by folder or name; None: the ResNet-50 among the data sets"
    )
    preprocess: Literal["caffe", "torchvision"] | None = Field(
        None, description="how ResNet-50 weights want pictures; None: caffe"
    )
    allow_missing: bool = Field(
        False, description="leave out images without features, captions or a picture that can be "
        "read, instead of refusing them"
    )
    valid_share: float = Field(
        0.1, gt=0, lt=1, description="of the images, where no validation split is named"
    )
    test_share: float = Field(
        0.1, gt=0, lt=1, description="of the images, where no test split is named"
    )
    min_count: int = Field(5, ge=1, description="words seen less often in training become <unk>")
    max_vocab: int | None = Field(None, ge=4, description="with <eos>, <unk> and <start>")
    batch_size: int = Field(64, ge=1, description="captions in a batch")

    @model_validator(mode="after")
    def _one_source(self) -> CaptionData:
        if self.images is None and (self.extractor is not None or self.preprocess is not None):
            raise ValueError("an extractor makes features of pictures, got one without images; "
                             "name their folder, or leave extractor and preprocess out")
        return self

    @field_validator("images", "features", "extractor")
    @classmethod
    def _found_from_anywhere(cls, value: str | None) -> str | None:
        """Commands may be given in another folder than the training."""
        return whole_path(value) if value else value

    @property
    def score(self) -> str:
        """What patience watches on validation."""
        return "nll"

    def describe(self, num_data: int) -> str:
        pictures = f" of {self.images}" if self.images else ""
        return (f"{self.corpus}{pictures}, batches of {self.batch_size} captions, N = {num_data} "
                f"words")
