"""The data table of image captioning."""

from __future__ import annotations

from pydantic import Field

from .base import Table


class CaptionData(Table):
    """Which captions and image features, the vocabulary cut-off, and batches."""

    corpus: str = Field("flickr8k", description="a data set by name, or a caption file (token lines, Karpathy's JSON)")
    features: str | None = Field(None, description="features where the corpus is a file: .npy, .npz, .safetensors")
    allow_missing: bool = Field(False, description="leave images without features out instead of refusing them")
    min_count: int = Field(5, ge=1, description="words seen less often in training become <unk>")
    max_vocab: int | None = Field(None, ge=4, description="with <eos>, <unk> and <start>")
    batch_size: int = Field(64, ge=1, description="captions in a batch")

    @property
    def score(self) -> str:
        """What patience watches on validation."""
        return "nll"

    def describe(self, num_data: int) -> str:
        return f"{self.corpus}, batches of {self.batch_size} captions, N = {num_data} words"
