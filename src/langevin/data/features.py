"""Features of images by name: `.npy` with a file of names, `.npz`, `.safetensors`.

Checked on reading, without pickle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from ..errors import LangevinError
from ..files import decode_utf8, expect_file

HASHED_WHOLE = 64 << 20
BLOCK = 1 << 20
SUFFIXES = (".npy", ".npz", ".safetensors")
EXTRACTOR_KEYS = {"name", "sha256", "config_sha256", "preprocess", "width"}
"""What is told of the network that made features."""


@dataclass(frozen=True)
class ImageFeatures:
    """One row of numbers for each image, in the precision of the file; handed out in float32."""

    names: list[str]
    values: Tensor
    source: str
    rows: dict[str, int] = field(init=False)
    extractor: dict[str, Any] | None = None
    """By what the network is known that made them of pictures, if that is."""

    def __post_init__(self) -> None:
        values, names = self.values, self.names
        if values.dim() != 2 or not values.is_floating_point() or not values.numel():
            raise LangevinError(
                f"expected floating-point features [images, width] in {self.source}, got "
                f"{values.dtype} of shape {list(values.shape)}"
            )
        if len(names) != len(values):
            raise LangevinError(
                f"the features in {self.source} have {len(values)} rows but {len(names)} names; "
                f"each row needs a name, in the same order"
            )
        seen = values.float() if values.dtype == torch.float64 else values  # as by a model
        bad = (~torch.isfinite(seen).all(1)).nonzero().flatten().tolist()
        if bad:
            problem = "too large for float32" if torch.isfinite(values).all() else "not finite"
            raise LangevinError(
                f"{len(bad)} of {len(values)} rows in {self.source} are {problem}, first row "
                f"{bad[0]} ({names[bad[0]]!r}); compute those features again"
            )
        object.__setattr__(self, "rows", {name: number for number, name in enumerate(names)})
        if len(self.rows) < len(names):
            twice = next(name for number, name in enumerate(names) if self.rows[name] != number)
            raise LangevinError(
                f"{twice!r} has more than one row in {self.source}; name each image once"
            )

    @classmethod
    def of_row(cls, source: str, row: Sequence[float]) -> ImageFeatures:
        """Of one image, which is named as its source is."""
        return cls([source], torch.tensor([row], dtype=torch.float32), source)

    @property
    def width(self) -> int:
        return self.values.shape[1]

    def take(self, rows: Tensor) -> Tensor:
        """These rows, in float32."""
        return self.values[rows].float()

    def missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.rows]

    def expect_width(self, width: int) -> None:
        """Refuse features that another network made than the one the model was trained with."""
        if self.width != width:
            raise LangevinError(
                f"the model takes {width} features an image, {self.source} has {self.width}; use "
                f"the network that made the training features"
            )

    def to_bytes(self) -> bytes:
        """As a safetensors file, which `read_features` reads."""
        about = {"names": json.dumps(self.names)}
        if self.extractor is not None:
            about["extractor"] = json.dumps(self.extractor)
        return save({"features": self.values.contiguous()}, about)

    def sha256(self) -> str:
        """A hash of names and numbers; of large files, of blocks spread over the whole: cheap."""
        content = self.values.contiguous().view(torch.uint8).numpy().reshape(-1).data
        if len(content) <= HASHED_WHOLE:
            pieces = [content]
        else:
            starts = (i * (len(content) - BLOCK) // 63 for i in range(64))
            pieces = [content[start : start + BLOCK] for start in starts]
        about = json.dumps([self.names, list(self.values.shape), str(self.values.dtype)])
        digest = hashlib.sha256(about.encode())
        for piece in pieces:
            digest.update(piece)
        return digest.hexdigest()


def read_features(path: Path, names: Path | None = None, *, named: bool = True) -> ImageFeatures:
    """Features of any of the three kinds, named in the file or in one beside it, else by row.

    Whoever needs names refuses features without: `named`.
    """
    if path.suffix not in SUFFIXES:
        raise LangevinError(f"expected features as {', '.join(SUFFIXES)}, got {path}")
    expect_file(path, "image features at", "name a file of features")
    extractor = None
    with reading(str(path)):
        if path.suffix == ".safetensors":
            values, found, extractor = read_safetensors(path)
        else:
            values, found = read_numpy(path.read_bytes())
    if found is not None and names is not None:
        raise LangevinError(
            f"expected no names beside those that {path} carries, got {names}; leave --names out"
        )
    found = names_beside(path, names, len(values), named=named) if found is None else found
    if found is None and named:
        raise LangevinError(
            f"the features in {path} have no names: put the image names, one a line in the order "
            f"of the rows, into {path.with_suffix('').name}_names.txt beside it"
        )
    rows = [f"row {number}" for number in range(len(values))]
    return ImageFeatures(rows if found is None else found, values, str(path), extractor=extractor)


def features_from_bytes(values: bytes, names: bytes, source: str) -> ImageFeatures:
    """The same from the contents of a `.npy` file and of its names."""
    with reading(source):
        rows, _ = read_numpy(values)
    return ImageFeatures(names_in(names, f"the names of {source}"), rows, source)


@contextmanager
def reading(source: str) -> Iterator[None]:
    """A damaged file raises whatever it makes its reader stumble over."""
    try:
        yield
    except Exception as error:
        raise LangevinError(f"{source} cannot be read as image features: {error}") from None


def read_numpy(raw: bytes) -> tuple[Tensor, list[str] | None]:
    """The array of a `.npy`; of a `.npz` its matrix of numbers and its list of names, if any.

    A single vector is one row.
    """
    loaded = np.load(BytesIO(raw), allow_pickle=False)
    arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    lists = [a.tolist() for a in arrays.values() if a.dtype.kind in "US" and a.ndim == 1]
    matrices = [a for name, a in arrays.items() if a.dtype.kind == "f" or not name]
    if len(matrices) != 1 or len(lists) > 1:
        found = ", ".join(arrays) or "nothing"
        raise ValueError(f"expected one array of features and one of names, got {found}")
    names = [n.decode() if isinstance(n, bytes) else str(n) for n in lists[0]] if lists else None
    native = matrices[0].astype(matrices[0].dtype.newbyteorder("="), copy=False)
    return torch.from_numpy(np.atleast_2d(native)), names


def read_safetensors(path: Path) -> tuple[Tensor, list[str] | None, dict[str, Any] | None]:
    """One matrix, with names and extractor as JSON in the metadata, or names beside."""
    with safe_open(path, framework="pt") as file:
        tensors: list[Tensor] = [file.get_tensor(key) for key in file.keys()]  # noqa: SIM118
        about: dict[str, str] = file.metadata() or {}
    if len(tensors) != 1 or tensors[0].dim() != 2:
        shapes = [list(tensor.shape) for tensor in tensors]
        raise ValueError(f"expected one matrix of features, got tensors of {shapes[:3]}")
    names, extractor = listed_as(about, "names"), listed_as(about, "extractor")
    if "names" in about and (
        not isinstance(names, list) or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"expected 'names' in its metadata to be a JSON list of strings, got "
                         f"{about['names'][:60]!r}")
    if extractor is not None and not (
        isinstance(extractor, dict) and extractor.keys() == EXTRACTOR_KEYS
    ):
        raise ValueError(f"expected 'extractor' in its metadata to have {sorted(EXTRACTOR_KEYS)}, "
                         f"got {about['extractor'][:60]!r}")
    return tensors[0], names, extractor


def listed_as(about: dict[str, str], key: str) -> Any:
    """What stands under a key as JSON; None where nothing does, or none can be read."""
    try:
        return json.loads(about[key]) if key in about else None
    except ValueError:
        return None


def names_beside(path: Path, names: Path | None, rows: int, *, named: bool) -> list[str] | None:
    """From the file given, else from `X_names.txt` beside `X.npy`, else from the only such file.

    The last, where names may be missing, must fit the rows.
    """
    usual = Path(f"{path.with_suffix('')}_names.txt")
    listed = sorted(path.parent.glob("*names*.txt"))
    guessed = names is None and usual not in listed
    if guessed and len(listed) != 1:
        return None
    source = names or (listed[0] if guessed else usual)
    try:
        raw = source.read_bytes()
    except OSError as error:
        raise LangevinError(
            f"expected image names at {source}, got no file that can be read ({error.strerror}); "
            f"pass a text file with one name a line"
        ) from None
    found = names_in(raw, str(source))
    return None if guessed and not named and len(found) != rows else found


def names_in(raw: bytes, source: str) -> list[str]:
    """One name a line, in UTF-8; names may have spaces."""
    lines = decode_utf8(raw, source).splitlines()
    return [line.strip() for line in lines if line.strip()]


def named_rows(features: ImageFeatures, names: Sequence[str] | None) -> ImageFeatures:
    """The rows of these images only; all when none are named."""
    if not names:
        return features
    if missing := features.missing(names):
        raise LangevinError(
            f"{len(missing)} of {len(names)} images have no features in {features.source}, first "
            f"{missing[0]!r}; use names that are there, such as {features.names[0]!r}"
        )
    rows = torch.tensor([features.rows[name] for name in names])
    return ImageFeatures(list(names), features.values[rows], features.source)
