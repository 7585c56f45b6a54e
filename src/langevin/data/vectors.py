"""Word vectors → the first value of an embedding.

Formats: `NAME.npy` with `NAME.vocab.tsv` (word, tab, row), by name from LANGEVIN_DATA/word_vectors or by path; word2vec
binary (`.bin`); text with word2vec's header line or without, as GloVe's. Words are looked up exactly, then in lower
case.

Sets come at scales of their own (unit length, or lengths about 41), which a learning rate and a prior would feel. All
are multiplied by one factor that makes the root mean square of their elements `SCALE`: 300 numbers then have length
3, the scale of the original Google News vectors.
"""

from __future__ import annotations

import hashlib
import io
import math
import mmap
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import LangevinError
from .catalogue import DATASETS, VECTORS, data_folder

SCALE = 3 / math.sqrt(300)
"""Root mean square of the elements of every set after loading: 0.173."""

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class WordVectors:
    """Rows of numbers, rescaled, and the row of each word; rows may be shared."""

    name: str
    rows: dict[str, int]
    matrix: Matrix
    sha256: str

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def find(self, word: str) -> int | None:
        """The row of a word as it is spelled, else in lower case."""
        row = self.rows.get(word)
        return self.rows.get(word.lower()) if row is None else row

    def embed(self, words: Sequence[str], seed: int | None = None) -> Tensor:
        """[words, dim]: known words get their vector, the others zeros or, with a seed, N(0, SCALE²) by their place."""
        made = torch.zeros(len(words), self.dim)
        if seed is not None:
            made.normal_(std=SCALE, generator=torch.Generator().manual_seed(seed))
        found = [(place, row) for place, word in enumerate(words) if (row := self.find(word)) is not None]
        if found:
            places, rows = zip(*found, strict=True)
            made[list(places)] = torch.from_numpy(self.matrix[list(rows)])
        return made

    def coverage(self, counts: Mapping[str, int], readable: Container[str]) -> dict[str, float]:
        """Which share of the types, and of the tokens, of a text has a vector and is in the model's vocabulary."""
        known = [word for word in counts if word in readable and self.find(word) is not None]
        return {"types": len(known) / max(len(counts), 1),
                "tokens": sum(counts[word] for word in known) / max(sum(counts.values()), 1)}


def load_vectors(name_or_path: str, wanted: Collection[str]) -> WordVectors:
    """The vectors of the wanted words; the scale is that of the words which were found."""
    path = Path(name_or_path)
    if name_or_path in {known.name for known in VECTORS}:
        known = DATASETS[name_or_path]
        return pair(name_or_path, known.read("vectors"), known.read("words"), wanted)
    if not path.is_file():
        beside, shared = Path(f"{name_or_path}.npy"), data_folder() / "word_vectors" / f"{name_or_path}.npy"
        path = beside if beside.is_file() else path if path.suffix else shared
    if not path.is_file():
        names = ", ".join(known.name for known in VECTORS)
        raise LangevinError(f"expected word vectors at {path}, found nothing; pass one of {names}, or a .npy (beside "
                            f"its .vocab.tsv), .bin or text file")
    try:
        if path.suffix == ".npy":
            words = path.with_name(f"{path.stem}.vocab.tsv")
            if not words.is_file():
                raise LangevinError(f"expected the words of {path} in {words}, found nothing there")
            return pair(path.stem, path.read_bytes(), words.read_bytes(), wanted)
        stream = binary_rows(path) if path.suffix == ".bin" else text_rows(path)
        return gather(path.stem, stream, file_sha256(path), wanted)
    except (OSError, ValueError) as error:
        raise LangevinError(f"cannot read word vectors from {path}: {error}") from None


def pair(name: str, vectors: bytes, words: bytes, wanted: Collection[str]) -> WordVectors:
    """float16 or float32 rows, and lines of word, tab, row."""
    matrix = np.load(io.BytesIO(vectors), allow_pickle=False)
    if matrix.ndim != 2:
        raise LangevinError(f"expected a row of numbers for each word of {name}, got an array of {matrix.ndim} "
                            f"dimensions; save a matrix [words, numbers]")
    rows = {}
    for line in words.decode().removesuffix("\n").split("\n"):
        word, _, row = line.rpartition("\t")
        rows[word] = int(row)
    strange = [row for row in rows.values() if not 0 <= row < len(matrix)]
    if strange:
        raise LangevinError(f"the words of {name} name row {max(strange)}, there are {len(matrix)} rows; "
                            f"the two files do not belong together")
    spellings = with_lower_case(wanted)
    kept = {word: row for word, row in rows.items() if word in spellings}
    return scaled(name, kept, matrix, hashlib.sha256(vectors + words).hexdigest())


def gather(name: str, stream: Iterator[tuple[str, Matrix]], sha256: str, wanted: Collection[str]) -> WordVectors:
    """Of a set that may be larger than memory, the wanted words; the first of two equal words counts."""
    spellings, rows, kept = with_lower_case(wanted), dict[str, int](), list[Matrix]()
    for word, vector in stream:
        if word in spellings and word not in rows:
            rows[word] = len(kept)
            kept.append(vector.copy())
    return scaled(name, rows, np.stack(kept) if kept else np.zeros((0, 1), np.float32), sha256)


def with_lower_case(words: Collection[str]) -> set[str]:
    return {*words, *(word.lower() for word in words)}


def scaled(name: str, rows: dict[str, int], matrix: NDArray[np.floating], sha256: str) -> WordVectors:
    """Only the rows in use, at the common scale."""
    if not rows:
        raise LangevinError(f"word vectors {name} know none of the words; choose vectors of the same language")
    used = np.unique(np.fromiter(rows.values(), int))
    numbers = matrix[used].astype(np.float32)
    if not np.isfinite(numbers).all() or not numbers.any():
        raise LangevinError(f"expected finite numbers in the word vectors {name}, got NaN, infinity or only zeros")
    numbers *= np.float32(SCALE / math.sqrt(float(np.mean(np.square(numbers, dtype=np.float64)))))
    place = {int(row): new for new, row in enumerate(used)}
    return WordVectors(name, {word: place[row] for word, row in rows.items()}, numbers, sha256)


def text_rows(path: Path) -> Iterator[tuple[str, Matrix]]:
    """`word x y …` lines, after a `words dim` line or without one. Words may hold spaces."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        first = lines.readline().rstrip()
        header = first.split(" ")
        if len(header) == 2 and all(part.isdigit() for part in header):
            dim = int(header[1])
        else:
            dim = len(header) - 1
            yield one_row(first, dim, path, 1)
        for number, line in enumerate(lines, 2):
            yield one_row(line.rstrip(), dim, path, number)


def one_row(line: str, dim: int, path: Path, number: int) -> tuple[str, Matrix]:
    word, *numbers = line.rsplit(" ", dim)
    if len(numbers) != dim or not dim:
        raise LangevinError(f"expected a word and {max(dim, 1)} numbers in line {number} of {path}, got {line[:60]!r}")
    return word, np.array(numbers, dtype=np.float32)


def binary_rows(path: Path) -> Iterator[tuple[str, Matrix]]:
    """word2vec's own format: `words dim` and a line end, then each word, a space, and its float32 numbers."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = content.find(b"\n")
        header = content[:end].split()
        if len(header) != 2:
            raise LangevinError(f"expected the number of words and of dimensions at the head of {path}, "
                                f"got {bytes(content[:40])!r}")
        count, dim, at = int(header[0]), int(header[1]), end + 1
        for number in range(count):
            space = content.find(b" ", at)
            after = space + 1 + 4 * dim
            if space < 0 or after > len(content):
                raise LangevinError(f"{path} ends after {number} of {count} words; get the whole file")
            word = content[at:space].lstrip(b"\n").decode("utf-8", "replace")
            yield word, np.frombuffer(content[space + 1 : after], dtype="<f4")
            at = after


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
