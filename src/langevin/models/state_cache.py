"""Hidden states of the tokens of texts, in memory or mapped from a folder that is kept bounded.

A set of texts has two files, named by a checksum of the encoder and all tokens: the states, as bare
float16 numbers, and what says where each text begins, written last. What cannot be read as it
should be counts as absent. Where room is needed, the sets that were longest unused go.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ..errors import LangevinError
from ..files import make_folder, write_atomic

Halves = NDArray[np.float16]
STATES, FACTS = ".states", ".safetensors"
OURS = re.compile(r"\.?[0-9a-f]{64}(\.states|\.safetensors|\.[0-9a-f]+\.tmp)")
"""Names of the files that may be removed."""


@dataclass(frozen=True)
class States:
    """States of all tokens, one text after the other, and what is known of each text."""

    states: Halves
    """[tokens, width]."""
    ends: Tensor
    """Where the states of each text end."""
    means: Tensor
    """Of the states of each text, [texts, width], float32."""

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, text: int) -> Tensor:
        """The states of one text, [tokens, width], float16."""
        text = range(len(self))[text]
        first = int(self.ends[text - 1]) if text else 0
        return torch.from_numpy(self.states[first : int(self.ends[text])])


@dataclass(frozen=True)
class TokenStates(States):
    """The same, and which texts were longer than the encoder reads."""

    long: tuple[int, ...]

    @property
    def cut(self) -> int:
        """How many these are."""
        return len(self.long)


@dataclass(frozen=True)
class StateFile:
    """Rows of halves that are written in any order."""

    file: BinaryIO
    width: int

    def __setitem__(self, rows: slice, values: Halves) -> None:
        self.file.seek(rows.start * self.width * 2)
        self.file.write(values.astype("<f2").tobytes())


@dataclass(frozen=True)
class StateCache:
    """A folder of states, `limit` bytes at most."""

    folder: Path
    limit: int

    def find(self, key: str, width: int) -> States | None:
        """The states of a key, mapped into memory; None where they are not whole."""
        path = self.folder / f"{key}{STATES}"
        try:
            facts = load((self.folder / f"{key}{FACTS}").read_bytes())
            ends, means = facts["ends"], facts["means"]
            tokens = int(ends[-1])
            if path.stat().st_size != tokens * width * 2 or means.shape != (len(ends), width):
                return None
            # copied where written to: torch wants memory that may be
            states = np.memmap(path, np.dtype("<f2"), "c", shape=(tokens, width))
            os.utime(path)
            os.utime(path.with_suffix(FACTS))
        except (OSError, KeyError, ValueError, IndexError, SafetensorError):
            return None
        return States(states, ends, means)

    @contextlib.contextmanager
    def write(self, key: str, tokens: int, width: int) -> Iterator[StateFile]:
        """A file for the states of a key; it has its name when all are written."""
        self._make_room(tokens * width * 2)
        temporary = self.folder / f".{key}.{secrets.token_hex(4)}.tmp"
        try:
            with temporary.open("xb") as file:
                yield StateFile(file, width)
            temporary.replace(self.folder / f"{key}{STATES}")
        except OSError as error:
            raise LangevinError(
                f"cannot keep {tokens * width * 2:,} bytes of states in {self.folder}: "
                f"{error.strerror}; free some space or choose another folder"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)

    def keep(self, key: str, ends: Tensor, means: Tensor) -> None:
        """What is known of the texts, beside their states."""
        write_atomic(self.folder / f"{key}{FACTS}", save({"ends": ends, "means": means}))

    def _make_room(self, size: int) -> None:
        if size > self.limit:
            raise LangevinError(
                f"expected states of at most {self.limit:,} bytes for {self.folder}, these texts "
                f"have {size:,}; allow more, choose fewer layers, or pass fewer texts"
            )
        try:
            make_folder(self.folder)
            files = [path for path in self.folder.iterdir() if OURS.fullmatch(path.name)]
            files.sort(key=lambda path: path.stat().st_mtime)
            total = sum(path.stat().st_size for path in files)
            for path in files:
                if total + size <= self.limit:
                    break
                total -= path.stat().st_size
                path.unlink()
        except OSError as error:
            raise LangevinError(f"cannot use {self.folder} for states: {error.strerror}; "
                                f"choose another folder") from error


def key_of(encoder: Sequence[object], tokens: Sequence[Tensor]) -> str:
    """A checksum of the facts of an encoder and of the tokens of all texts."""
    digest = hashlib.sha256(json.dumps(list(encoder)).encode())
    for row in tokens:
        digest.update(len(row).to_bytes(8, "little") + row.numpy().tobytes())
    return digest.hexdigest()
