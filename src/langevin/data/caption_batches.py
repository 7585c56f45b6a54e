"""Captions joined with the features of their images, as tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import LangevinError
from .captions import Captions, with_marks
from .features import ImageFeatures
from .vocabulary import END, Vocabulary


def joint_sha256(captions: Captions, features: ImageFeatures) -> str:
    return hashlib.sha256(f"{captions.sha256} {features.sha256()}".encode()).hexdigest()


def images_with_features(
    captions: Captions, features: ImageFeatures, *, allow_missing: bool
) -> dict[str, list[str]]:
    """The images of each split that have features; others are refused, or left out if allowed."""
    found = {}
    for split, names in captions.splits.items():
        missing = set(features.missing(names))
        found[split] = [name for name in names if name not in missing]
        if missing and (not allow_missing or not found[split]):
            first = next(name for name in names if name in missing)
            raise LangevinError(
                f"{len(missing)} of {len(names)} images of the {split} split have no features in "
                f"{features.source}, first {first!r}; add their features, or leave them out by "
                f"--skip-damaged"
            )
    return found


@dataclass(frozen=True)
class CaptionSet:
    """Captions of some images as one padded matrix, in the order of images and captions."""

    tokens: Tensor
    """[captions, longest + 2]: `<start>`, the words, `<eos>`, then `<eos>` as padding."""
    lengths: Tensor
    """How many tokens of each caption are predicted: its words and `<eos>`."""
    images: Tensor
    """Row of each caption's image in the features."""

    @classmethod
    def build(
        cls, names: Sequence[str], captions: Captions, features: ImageFeatures,
        vocabulary: Vocabulary,
    ) -> CaptionSet:
        """Captions without a word are left out."""
        pairs = [
            (features.rows[name], vocabulary.encode_tokens(with_marks(text)))
            for name in names for text in captions.texts[name]
        ]
        images, encoded = zip(*(pair for pair in pairs if len(pair[1]) > 2), strict=True)
        lengths = torch.tensor([len(caption) - 1 for caption in encoded])
        shape = len(encoded), int(lengths.max()) + 1
        tokens = torch.full(shape, vocabulary.numbers[END])
        tokens[torch.arange(shape[1]) <= lengths[:, None]] = torch.cat(encoded)
        return cls(tokens, lengths, torch.tensor(images))

    @property
    def words(self) -> int:
        """How many tokens are predicted in all."""
        return int(self.lengths.sum())

    def __len__(self) -> int:
        return len(self.tokens)

    def some(self, rows: slice) -> CaptionSet:
        """Some of the captions, which may be none."""
        return CaptionSet(self.tokens[rows], self.lengths[rows], self.images[rows])

    def take(self, rows: Tensor) -> CaptionBatch:
        """These captions, cut to the longest of them."""
        lengths = self.lengths[rows]
        longest = int(lengths.max())
        tokens = self.tokens[rows, : longest + 1]
        real = torch.arange(longest) < lengths[:, None]
        return CaptionBatch(self.images[rows], tokens[:, :-1], tokens[:, 1:], real)


@dataclass(frozen=True)
class CaptionBatch:
    """Image rows; inputs and targets [captions, time], the targets shifted by one.

    `real` marks what is not padding.
    """

    images: Tensor
    inputs: Tensor
    targets: Tensor
    real: Tensor
