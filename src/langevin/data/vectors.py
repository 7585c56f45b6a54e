"""Word vectors → the first value of an embedding.

Formats: `NAME.npy` with `NAME.vocab.tsv` (word, tab, row), by name from LANGEVIN_DATA/word_vectors
or by path; word2vec binary (`.bin`); text with word2vec's header line or without, as GloVe's. Words
are looked up exactly, then in lower case.

Sets come at scales of their own (unit length, or lengths about 41), which a learning rate and a
prior would feel. All are multiplied by one factor that makes the root mean square of their elements
`SCALE`: 300 numbers then have length 3, the scale of the original Google News vectors.
"""

from __future__ import annotations

import hashlib
import io
import math
import mmap
from collections.abc import Collection, Iterator, Sequence
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
        """[words, dim]: known words get their vector, the others zeros.

        With a seed the others get N(0, SCALE²) by their place.
        """
        vectors = torch.zeros(len(words), self.dim)
        if seed is not None:
            vectors.normal_(std=SCALE, generator=torch.Generator().manual_seed(seed))
        rows = ((place, self.find(word)) for place, word in enumerate(words))
        found = {place: row for place, row in rows if row is not None}
        if found:
            vectors[list(found)] = torch.from_numpy(self.matrix[list(found.values())])
        return vectors


def load_vectors(name_or_path: str, wanted: Collection[str]) -> WordVectors:
    """The vectors of the wanted words; the scale is that of the words which were found."""
    path = Path(name_or_path)
    if name_or_path in {known.name for known in VECTORS}:
        known = DATASETS[name_or_path]
        return pair(name_or_path, known.read("vectors"), known.read("words"), wanted)
    if not path.is_file():
        beside = Path(f"{name_or_path}.npy")
        shared = data_folder() / "word_vectors" / beside
        path = beside if beside.is_file() else path if path.suffix else shared
    if not path.is_file():
        names = ", ".join(known.name for known in VECTORS)
        raise LangevinError(f"expected word vectors at {path}, found nothing; pass one of {names}, "
                            f"or a .npy (beside its .vocab.tsv), .bin or text file")
    try:
        if path.suffix == ".npy":
            words = path.with_name(f"{path.stem}.vocab.tsv")
            if not words.is_file():
                raise LangevinError(
                    f"expected the words of {path} in {words}, found nothing there"
                )
            return pair(path.stem, path.read_bytes(), words.read_bytes(), wanted)
        return collect_rows(path.stem, rows_in(path), file_sha256(path), wanted)
    except (OSError, ValueError) as error:
        raise LangevinError(f"cannot read word vectors from {path}: {error}") from None


def pair(name: str, vectors: bytes, words: bytes, wanted: Collection[str]) -> WordVectors:
    """float16 or float32 rows, and lines of word, tab, row."""
    matrix = np.load(io.BytesIO(vectors), allow_pickle=False)
    if matrix.ndim != 2:
        raise LangevinError(f"expected a row of numbers for each word of {name}, got an array of "
                            f"{matrix.ndim} dimensions; save a matrix [words, numbers]")
    rows = {}
    for line in words.decode().removesuffix("\n").split("\n"):
        word, _, row = line.rpartition("\t")
        rows[word] = int(row)
    strange = [row for row in rows.values() if not 0 <= row < len(matrix)]
    if strange:
        raise LangevinError(f"the words of {name} name row {max(strange)}, there are {len(matrix)} "
                            f"rows; the two files do not belong together")
    spellings = with_lower_case(wanted)
    found = {word: row for word, row in rows.items() if word in spellings}
    return scaled(name, found, matrix, hashlib.sha256(vectors + words).hexdigest())


def collect_rows(
    name: str, stream: Iterator[tuple[str, Matrix]], sha256: str, wanted: Collection[str]
) -> WordVectors:
    """Of a set that may be larger than memory, the wanted words; of two equal ones the first."""
    spellings, found = with_lower_case(wanted), dict[str, Matrix]()
    for word, vector in stream:
        if word in spellings and word not in found:
            found[word] = vector.copy()
    rows = {word: row for row, word in enumerate(found)}
    matrix = np.stack(list(found.values())) if found else np.zeros((0, 1), np.float32)
    return scaled(name, rows, matrix, sha256)


def with_lower_case(words: Collection[str]) -> set[str]:
    return {*words, *(word.lower() for word in words)}


def scaled(
    name: str, rows: dict[str, int], matrix: NDArray[np.floating], sha256: str
) -> WordVectors:
    """Only the rows in use, at the common scale."""
    if not rows:
        raise LangevinError(
            f"word vectors {name} know none of the words; choose vectors of the same language"
        )
    used = np.unique(np.fromiter(rows.values(), int))
    numbers = matrix[used].astype(np.float32)
    if not np.isfinite(numbers).all() or not numbers.any():
        raise LangevinError(
            f"expected finite numbers in the word vectors {name}, got NaN, infinity or only zeros"
        )
    mean_square = float(np.mean(np.square(numbers, dtype=np.float64)))
    numbers *= np.float32(SCALE / math.sqrt(mean_square))
    place = {int(row): new for new, row in enumerate(used)}
    return WordVectors(name, {word: place[row] for word, row in rows.items()}, numbers, sha256)


def rows_in(path: Path) -> Iterator[tuple[str, Matrix]]:
    """Word and vector, one after the other: of word2vec's binary `.bin`, or of lines of text.

    Both may begin with a line `words dim`; a `.bin` does.
    """
    if not path.stat().st_size:
        raise LangevinError(f"expected word vectors in {path}, it is empty; get the whole file")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        first = content.readline()
        header = first.removeprefix(b"\xef\xbb\xbf").split()
        counted = len(header) == 2 and all(part.isdigit() for part in header)
        if path.suffix == ".bin":
            if not counted:
                raise LangevinError(f"expected the number of words and of dimensions at the head "
                                    f"of {path}, got {first[:40]!r}")
            yield from binary_rows(content, int(header[0]), int(header[1]), path)
            return
        dim = int(header[1]) if counted else first.rstrip().count(b" ")
        if not counted:
            content.seek(0)
        for number, line in enumerate(iter(content.readline, b""), 2 if counted else 1):
            text = line.decode("utf-8-sig" if number == 1 else "utf-8", "replace")
            yield text_row(text.rstrip(), dim, path, number)


def text_row(line: str, dim: int, path: Path, number: int) -> tuple[str, Matrix]:
    """`word x y …`; words may hold spaces."""
    word, *numbers = line.rsplit(" ", dim)
    if len(numbers) != dim or not dim:
        raise LangevinError(f"expected a word and {max(dim, 1)} numbers in line {number} of "
                            f"{path}, got {line[:60]!r}")
    return word, np.array(numbers, dtype=np.float32)


def binary_rows(
    content: mmap.mmap, count: int, dim: int, path: Path
) -> Iterator[tuple[str, Matrix]]:
    """Each word, a space, and its float32 numbers."""
    for number in range(count):
        start = content.tell()
        space = content.find(b" ", start)
        after = space + 1 + 4 * dim
        if space < 0 or after > len(content):
            raise LangevinError(f"{path} ends after {number} of {count} words; get the whole file")
        word = content[start:space].lstrip(b"\n").decode("utf-8", "replace")
        yield word, np.frombuffer(content[space + 1 : after], dtype="<f4")
        content.seek(after)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
