"""Known data sets that may not be shipped: where they are looked for, what they must be.

The facts about them, and how to get them, stand in catalogue.toml.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import read_bytes, read_utf8

VARIABLE = "LANGEVIN_DATA"


def data_folder() -> Path:
    """Where data sets are looked for."""
    return Path(os.environ.get(VARIABLE, "data"))


@dataclass(frozen=True)
class File:
    """One file of a data set, as it must be."""

    name: str
    size: int = 0
    sha256: str = ""
    """Empty where it is not known: then the file is taken as it is."""
    holds: str = ""

    @property
    def described(self) -> str:
        return f"{self.size:,} bytes" if self.size else self.holds


@dataclass(frozen=True)
class DataSet:
    """A named data set in a folder below LANGEVIN_DATA: `inside`, or one of the same name."""

    name: str
    what: str
    licence: str
    how_to_get: str
    files: dict[str, File]
    inside: str = ""
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of other files that will do, where people may bring their own."""
    labels: tuple[str, ...] = ()
    """What the numbers 0, 1, … stand for in sets of sentences."""

    @property
    def folder(self) -> Path:
        return data_folder() / (self.inside or self.name)

    def read(self, key: str) -> bytes:
        """One file, refused with what to do when it is missing or is another one."""
        file = self.files[key]
        path = self.folder / file.name
        if not path.is_file():
            wanted = ", ".join(f"{f.name} ({f.described})" for f in self.files.values())
            raise LangevinError(
                f"{self.name} is not there: looked for {path}; put {wanted} into {self.folder} or "
                f"set {VARIABLE} to the folder that holds {self.folder.name}/. {self.how_to_get}"
            )
        raw = read_bytes(path)
        if file.sha256 and hashlib.sha256(raw).hexdigest() != file.sha256:
            raise LangevinError(
                f"{path} is not the {key} file of {self.name}: expected {file.size:,} bytes "
                f"({file.holds}) with sha256 {file.sha256[:12]}…, got {len(raw):,} bytes; "
                f"check that the split files were not swapped or edited"
            )
        return raw

    def has_another(self, key: str) -> bool:
        """Whether one that will do is there instead of this file."""
        return not (self.folder / self.files[key].name).is_file() and any(
            any(self.folder.glob(pattern)) for pattern in self.instead.get(key, ())
        )

    def is_there(self) -> bool:
        """All its files or others that will do, whatever is in them."""
        return all((self.folder / file.name).is_file() or self.has_another(key)
                   for key, file in self.files.items())

    def state(self) -> dict[str, Any]:
        """What `langevin data` tells, JSON-ready."""
        problems = []
        for key in filter(lambda key: not self.has_another(key), self.files):
            try:
                self.read(key)
            except LangevinError as problem:
                problems.append(str(problem))
        whole = all((self.folder / file.name).is_file() for file in self.files.values())
        state = "found" if not problems else "damaged" if whole else "missing"
        return {
            "name": self.name, "state": state, "looked_in": str(self.folder), "what": self.what,
            "licence": self.licence, "how_to_get": self.how_to_get, "problems": problems,
            "files": {key: {"name": f.name, "bytes": f.size, "holds": f.holds}
                      for key, f in self.files.items()},
        }


def read_catalogue() -> dict[str, DataSet]:
    """Every data set of catalogue.toml by its name."""
    facts = tomllib.loads(read_utf8(Path(__file__).with_name("catalogue.toml")))
    return {name: data_set(name, **about) for name, about in facts.items()}


def data_set(
    name: str, *, files: dict[str, dict[str, Any]], instead: Mapping[str, list[str]] | None = None,
    labels: list[str] | None = None, **about: str,
) -> DataSet:
    """One data set from its table."""
    patterns = {key: tuple(globs) for key, globs in (instead or {}).items()}
    known = {key: File(**file) for key, file in files.items()}
    return DataSet(name, files=known, instead=patterns, labels=tuple(labels or ()), **about)


DATASETS = read_catalogue()
SENTENCES = tuple(known for known in DATASETS.values() if known.inside == "sentences")
VECTORS = tuple(known for known in DATASETS.values() if known.inside == "word_vectors")
