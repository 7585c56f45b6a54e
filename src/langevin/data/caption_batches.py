"""Captions joined with the features of their images, as tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor

from ..errors import LangevinError
from .captions import (
    CAPTIONED,
    SPLITS,
    Captions,
    checked,
    encode,
    first_of,
    from_token_lines,
    parse_karpathy,
    read_captions,
)
from .catalogue import DATASETS, DataSet
from .features import SUFFIXES, ImageFeatures, features_from_bytes, read_features
from .known_images import TOKENS
from .vocabulary import END, Vocabulary


def open_captioned(corpus: str, features: str | None) -> tuple[Captions, ImageFeatures]:
    """A data set by name, or a caption file or folder with the file of its features."""
    known = DATASETS.get(corpus)
    if known is not None and "captions" not in known.files:
        raise LangevinError(f"{corpus} has no captions; use {', '.join(CAPTIONED)} or a caption file")
    if known is None:
        return read_captions(Path(corpus)), read_features(features_beside(Path(corpus), features))
    captions = captions_of(known)
    return captions, features_of(known) if features is None else read_features(Path(features))


def captions_of(known: DataSet) -> Captions:
    """As the table of data sets names them, or a token file with its lists where people may bring their own."""
    path = known.folder / known.files["captions"].name
    others = None if is_there(known, "captions") else first_of(known.folder, TOKENS)
    if others is not None:
        return read_captions(others)
    raw = known.read("captions")
    if path.suffix == ".json":
        return checked(path, *parse_karpathy(path, raw), [raw])
    lists = {split: (known.folder / known.files[split].name, known.read(split)) for split in SPLITS}
    return from_token_lines(path, raw, lists)


def features_of(known: DataSet) -> ImageFeatures:
    """As the table of data sets names them, or the only ones in the folder where people may bring their own."""
    source = known.folder / known.files["features"].name
    if not is_there(known, "features") and feature_files(known.folder):
        return read_features(features_beside(known.folder, None))
    return features_from_bytes(known.read("features"), known.read("names"), str(source))


def is_there(known: DataSet, key: str) -> bool:
    """Whether this very file is to be read: it is there, or no other will do."""
    file = known.files[key]
    return bool(file.sha256) or (known.folder / file.name).is_file()


def features_beside(corpus: Path, features: str | None) -> Path:
    """The features that the recipe names, or the only ones in the folder of the captions."""
    if features is not None:
        return Path(features)
    folder = corpus if corpus.is_dir() else corpus.parent
    found = feature_files(folder)
    if len(found) != 1:
        raise LangevinError(
            f"expected one file of image features in {folder} ({', '.join(SUFFIXES)}), found {len(found)}; name it in "
            f"the recipe: features = \"FILE\""
        )
    return found[0]


def feature_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)


def joint_sha256(captions: Captions, features: ImageFeatures) -> str:
    return hashlib.sha256(f"{captions.sha256} {features.sha256()}".encode()).hexdigest()


def images_with_features(captions: Captions, features: ImageFeatures, *, allow_missing: bool) -> dict[str, list[str]]:
    """The images of each split that have features; others are refused, or left out where that is allowed."""
    kept = {}
    for split, names in captions.splits.items():
        missing = set(features.missing(names))
        kept[split] = [name for name in names if name not in missing]
        if missing and (not allow_missing or not kept[split]):
            first = next(name for name in names if name in missing)
            raise LangevinError(
                f"{len(missing)} of {len(names)} images of the {split} split have no features in {features.source}, "
                f"first {first!r}; add their features, or leave them out by allow_missing=true"
            )
    return kept


@dataclass(frozen=True)
class CaptionSet:
    """The captions of some images as one padded matrix, in the order of the images and of their captions."""

    tokens: Tensor
    """[captions, longest + 2]: `<start>`, the words, `<eos>`, then `<eos>` as padding."""
    lengths: Tensor
    """How many tokens of each caption are predicted: its words and `<eos>`."""
    images: Tensor
    """Row of each caption's image in the features."""

    @classmethod
    def build(
        cls, names: Sequence[str], captions: Captions, features: ImageFeatures, vocabulary: Vocabulary
    ) -> CaptionSet:
        """Captions without a word are left out."""
        pairs = [(features.rows[name], encode(vocabulary, text)) for name in names for text in captions.texts[name]]
        images, encoded = zip(*(pair for pair in pairs if len(pair[1]) > 2), strict=True)
        lengths = torch.tensor([len(caption) - 1 for caption in encoded])
        tokens = torch.full((len(encoded), int(lengths.max()) + 1), vocabulary.numbers[END])
        tokens[torch.arange(tokens.shape[1]) <= lengths[:, None]] = torch.tensor(list(chain.from_iterable(encoded)))
        return cls(tokens, lengths, torch.tensor(images))

    @property
    def words(self) -> int:
        """How many tokens are predicted in all."""
        return int(self.lengths.sum())

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: Tensor) -> CaptionBatch:
        """These captions, cut to the longest of them."""
        lengths = self.lengths[rows]
        longest = int(lengths.max())
        tokens = self.tokens[rows, : longest + 1]
        return CaptionBatch(self.images[rows], tokens[:, :-1], tokens[:, 1:], torch.arange(longest) < lengths[:, None])


@dataclass(frozen=True)
class CaptionBatch:
    """Image rows; inputs and targets [captions, time], the targets shifted by one; `real` marks what is not padding."""

    images: Tensor
    inputs: Tensor
    targets: Tensor
    real: Tensor
