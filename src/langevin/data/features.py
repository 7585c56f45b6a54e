"""Features of images by name: `.npy` with a file of names, `.npz`, `.safetensors`. Checked on reading, no pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from torch import Tensor

from ..errors import LangevinError
from ..files import no_file

HASHED_WHOLE = 64 << 20
BLOCK = 1 << 20
SUFFIXES = (".npy", ".npz", ".safetensors")


@dataclass(frozen=True)
class ImageFeatures:
    """One row of numbers for each image; kept in the precision of the file, handed out in float32."""

    names: list[str]
    values: Tensor
    source: str
    rows: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        values, names = self.values, self.names
        if values.dim() != 2 or not values.is_floating_point() or not values.numel():
            raise LangevinError(
                f"expected floating-point features [images, width] in {self.source}, got {values.dtype} of shape "
                f"{list(values.shape)}"
            )
        if len(names) != len(values):
            raise LangevinError(
                f"the features in {self.source} have {len(values)} rows but {len(names)} names; each row needs a name, "
                f"in the same order"
            )
        given = values.float() if values.dtype == torch.float64 else values  # as a model will be given them
        bad = (~torch.isfinite(given).all(1)).nonzero().flatten().tolist()
        if bad:
            problem = "too large for float32" if torch.isfinite(values).all() else "not finite"
            raise LangevinError(
                f"{len(bad)} of {len(values)} rows in {self.source} are {problem}, first row {bad[0]} "
                f"({names[bad[0]]!r}); compute those features again"
            )
        object.__setattr__(self, "rows", {name: number for number, name in enumerate(names)})
        if len(self.rows) < len(names):
            twice = next(name for number, name in enumerate(names) if self.rows[name] != number)
            raise LangevinError(f"{twice!r} has more than one row in {self.source}; name each image once")

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
                f"the model takes {width} features an image, {self.source} has {self.width}; use the network that made "
                f"the training features"
            )

    def sha256(self) -> str:
        """A hash of names and numbers; of large files, of blocks spread over the whole, so that it stays cheap."""
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
    """Features of any of the three kinds; names stand in the file or in one beside it, else, if allowed, rows."""
    if path.suffix not in SUFFIXES:
        raise LangevinError(f"expected features as {', '.join(SUFFIXES)}, got {path}")
    if problem := no_file(path):
        raise LangevinError(f"expected image features at {path}, which is {problem}; name a file of features")
    try:
        values, found = read_safetensors(path) if path.suffix == ".safetensors" else read_numpy(path.read_bytes())
    except Exception as error:  # a damaged file raises whatever it makes its reader stumble over
        raise unreadable(str(path), error) from None
    if found is not None and names is not None:
        raise LangevinError(f"expected no names beside those that {path} carries, got {names}; leave --names out")
    if found is None:
        found = names_for(path, names, len(values), named=named)
    if found is None and named:
        raise LangevinError(
            f"the features in {path} have no names: put the image names, one a line in the order of the rows, into "
            f"{path.with_suffix('').name}_names.txt beside it"
        )
    return ImageFeatures([f"row {i}" for i in range(len(values))] if found is None else found, values, str(path))


def features_from_bytes(values: bytes, names: bytes, source: str) -> ImageFeatures:
    """The same from the contents of a `.npy` file and of its names."""
    try:
        rows, _ = read_numpy(values)
    except Exception as error:  # whatever, as in read_features
        raise unreadable(source, error) from None
    return ImageFeatures(names_in(names, f"the names of {source}"), rows, source)


def unreadable(source: str, error: Exception) -> LangevinError:
    return LangevinError(f"{source} cannot be read as image features: {error}")


def read_numpy(raw: bytes) -> tuple[Tensor, list[str] | None]:
    """The array of a `.npy`; of a `.npz` its matrix of numbers and, if it is there, its list of names."""
    loaded = np.load(BytesIO(raw), allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return as_rows(loaded), None
    arrays = {name: loaded[name] for name in loaded.files}
    lists = [a.tolist() for a in arrays.values() if a.dtype.kind in "US" and a.ndim == 1]
    matrices = [a for a in arrays.values() if a.dtype.kind == "f"]
    if len(matrices) != 1 or len(lists) > 1:
        raise ValueError(f"expected one array of features and one of names, got {', '.join(arrays) or 'nothing'}")
    names = [n.decode() if isinstance(n, bytes) else str(n) for n in lists[0]] if lists else None
    return as_rows(matrices[0]), names


def as_rows(array: NDArray[np.generic]) -> Tensor:
    """A matrix; a single vector is one row."""
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return torch.from_numpy(np.atleast_2d(native))


def read_safetensors(path: Path) -> tuple[Tensor, list[str] | None]:
    """One matrix, with names as JSON in the metadata, or beside."""
    with safe_open(path, framework="pt") as file:
        tensors: list[Tensor] = [file.get_tensor(key) for key in file.keys()]  # noqa: SIM118  # no dictionary
        metadata = file.metadata() or {}
    if len(tensors) != 1 or tensors[0].dim() != 2:
        raise ValueError(f"expected one matrix of features, got tensors of {[list(t.shape) for t in tensors][:3]}")
    return tensors[0], names_in_json(metadata["names"]) if "names" in metadata else None


def names_in_json(text: str) -> list[str]:
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected 'names' in its metadata to be a JSON list of strings, got {text[:60]!r}")
    return names


def names_for(path: Path, names: Path | None, rows: int, *, named: bool) -> list[str] | None:
    """From the file given, else `X_names.txt` beside `X.npy`, else the only `*names*.txt` there (as with Flickr8k's),
    which must fit the rows where names may be missing."""
    beside = path.with_name(f"{path.stem}_names.txt")
    if names or not no_file(beside):
        return read_names(names or beside)
    others = sorted(path.parent.glob("*names*.txt"))
    found = read_names(others[0]) if len(others) == 1 else None
    return found if named or found is None or len(found) == rows else None


def read_names(path: Path) -> list[str]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise LangevinError(
            f"expected image names at {path}, got no file that can be read ({error.strerror}); pass a text file with "
            f"one name a line"
        ) from None
    return names_in(raw, str(path))


def names_in(raw: bytes, source: str) -> list[str]:
    """One name a line, in UTF-8; names may have spaces."""
    try:
        return [line.strip() for line in raw.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise LangevinError(
            f"expected UTF-8 in {source}, got the byte {raw[error.start]:#04x} at {error.start}; convert the file"
        ) from None


def named_rows(features: ImageFeatures, names: Sequence[str] | None) -> ImageFeatures:
    """The rows of these images only; all when none are named."""
    if not names:
        return features
    if missing := features.missing(names):
        raise LangevinError(
            f"{len(missing)} of {len(names)} images have no features in {features.source}, first {missing[0]!r}; use "
            f"names that are there, such as {features.names[0]!r}"
        )
    rows = torch.tensor([features.rows[name] for name in names])
    return ImageFeatures(list(names), features.values[rows], features.source)
