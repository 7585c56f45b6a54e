"""Known data sets that may not be shipped: where they are looked for, what they must be, how to get them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from .known_images import IMAGE_SETS

VARIABLE = "LANGEVIN_DATA"


@dataclass(frozen=True)
class File:
    """One file of a data set, as it must be."""

    name: str
    size: int
    sha256: str
    """Empty where it is not known: then the file is taken as it is."""
    holds: str

    @property
    def described(self) -> str:
        return f"{self.size:,} bytes" if self.size else self.holds


@dataclass(frozen=True)
class DataSet:
    """A named data set in a folder of the same name below LANGEVIN_DATA."""

    name: str
    what: str
    licence: str
    how_to_get: str
    files: dict[str, File]

    @property
    def folder(self) -> Path:
        return Path(os.environ.get(VARIABLE, "data")) / self.name

    def read(self, key: str) -> bytes:
        """One file, refused with what to do when it is missing or is another one."""
        file = self.files[key]
        path = self.folder / file.name
        if not path.is_file():
            wanted = ", ".join(f"{f.name} ({f.described})" for f in self.files.values())
            raise LangevinError(
                f"{self.name} is not there: looked for {path}; put {wanted} into {self.folder} or set {VARIABLE} to "
                f"the folder that holds {self.name}/. {self.how_to_get}"
            )
        raw = path.read_bytes()
        if file.sha256 and hashlib.sha256(raw).hexdigest() != file.sha256:
            raise LangevinError(
                f"{path} is not the {key} file of {self.name}: expected {file.size:,} bytes ({file.holds}) with sha256 "
                f"{file.sha256[:12]}…, got {len(raw):,} bytes; check that the split files were not swapped or edited"
            )
        return raw

    def state(self) -> dict[str, Any]:
        """What `langevin data` tells, JSON-ready."""
        problems = []
        for key in self.files:
            try:
                self.read(key)
            except LangevinError as problem:
                problems.append(str(problem))
        whole = all((self.folder / file.name).is_file() for file in self.files.values())
        state = "found" if not problems else "damaged" if whole else "missing"
        return {
            "name": self.name, "state": state, "looked_in": str(self.folder), "what": self.what,
            "licence": self.licence, "how_to_get": self.how_to_get, "problems": problems,
            "files": {key: {"name": f.name, "bytes": f.size, "holds": f.holds} for key, f in self.files.items()},
        }


DATASETS = {
    "ptb": DataSet(
        "ptb",
        "Penn Treebank, Mikolov's split, 10,000 words",
        "derived from LDC text; not to be passed on",
        "It is part of the 'simple-examples' archive of Mikolov's RNNLM toolkit.",
        {
            "train": File(
                "ptb.train.txt", 5_101_618, "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
                "929,589 tokens",
            ),
            "valid": File(
                "ptb.valid.txt", 399_782, "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
                "73,760 tokens",
            ),
            "test": File(
                "ptb.test.txt", 449_945, "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
                "82,430 tokens",
            ),
        },
    ),
}
DATASETS |= {
    name: DataSet(*about, {key: File(*file) for key, file in files.items()})
    for name, (about, files) in IMAGE_SETS.items()
}
