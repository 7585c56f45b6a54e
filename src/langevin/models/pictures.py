"""Pictures → image features, some at a time; what was computed is kept, so that nothing is lost.

The features of 256 pictures lie in the cache under a checksum of the extractor and of the contents
of these files. Whoever is interrupted goes on there.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..data.features import ImageFeatures
from ..data.images import expect_pillow
from ..data.vectors import file_sha256
from ..errors import LangevinError
from ..files import no_file
from ..process import SILENT, Progress
from .extractor import Extractor
from .reading import cache_of_states
from .state_cache import StateCache

KEPT_AT_ONCE, AT_ONCE = 256, 16
"""Pictures whose features are kept together, and those that go through the network together."""
SAID_AFTER = 20.0
"""Seconds of computing after which the log says how far it is."""
log = logging.getLogger("langevin")


def features_of_pictures(
    paths: Mapping[str, Path], extractor: Extractor, *, skip_damaged: bool = False,
    cache: StateCache | None = None, progress: Progress = SILENT,
) -> tuple[ImageFeatures, dict[str, str]]:  # fmt: skip
    """One row for each picture, by its name, in float16; the cache is that of frozen encoders.

    Damaged pictures are refused, or left out and given beside, each with what is wrong.
    """
    cache, advance = cache or cache_of_states(), progress.begin(len(paths), "pictures")
    pieces, damaged = list[Tensor](), dict[str, str]()
    expect_pillow()
    names, started = list(paths), time.monotonic()
    for start in range(0, len(names), KEPT_AT_ONCE):
        files = [paths[name] for name in names[start : start + KEPT_AT_ONCE]]
        piece = kept_features(files, extractor, cache, advance)
        for number in piece.isnan().any(1).nonzero().flatten().tolist():
            damaged[names[start + number]] = why_damaged(files[number], extractor)
        pieces.append(piece)
        say_progress(started, start + len(files), len(names))
    if damaged and (not skip_damaged or len(damaged) == len(paths)):
        first = next(iter(damaged))
        raise LangevinError(
            f"{len(damaged)} of {len(paths)} pictures are damaged: {name_some(damaged)} (of the "
            f"first: {damaged[first]}); mend them, or leave them out by --skip-damaged"
        )
    values = torch.cat(pieces)
    values = values[~values.isnan().any(1)]
    kept = [name for name in names if name not in damaged]
    found = ImageFeatures(kept, values, "the pictures", extractor=extractor.facts())
    return found, damaged


def say_progress(started: float, done: int, total: int) -> None:
    """In a log, for those who see no bar; nothing of what was in the cache or takes no time."""
    passed = time.monotonic() - started
    if passed > SAID_AFTER and done < total:
        left = passed * (total - done) / done
        log.info("features of %d of %d pictures, about %.0f minutes left", done, total, left / 60)


def name_some(names: Iterable[str], most: int = 5) -> str:
    """The first few."""
    several = list(names)
    return ", ".join(map(repr, several[:most])) + (", …" if len(several) > most else "")


def kept_features(
    files: Sequence[Path], extractor: Extractor, cache: StateCache, advance: Callable[[], None]
) -> Tensor:
    """[pictures, width] of some pictures, from the cache if they are there; NaN where damaged."""
    digest = hashlib.sha256(repr(sorted(extractor.facts().items())).encode())
    for path in files:
        digest.update(content_sum(path).encode())
    key, width = digest.hexdigest(), extractor.width
    found = cache.find(key, width)
    if found is not None and found.ends.tolist() == [len(files)]:
        for _ in files:
            advance()
        return found[0].clone()
    rows = compute_features(files, extractor, advance).half()
    with cache.write(key, len(files), width) as file:
        file[0 : len(files)] = rows.numpy()
    cache.keep(key, torch.tensor([len(files)]), rows.float().mean(0, keepdim=True))
    return rows


def content_sum(path: Path) -> str:
    """Of a file; what cannot be read is damaged like what cannot be decoded."""
    try:
        return "none" if no_file(path) else file_sha256(path)
    except OSError:
        return "none"


def compute_features(
    files: Sequence[Path], extractor: Extractor, advance: Callable[[], None]
) -> Tensor:
    """[pictures, width]; NaN for a picture that cannot be read."""
    values = torch.full((len(files), extractor.width), torch.nan)
    for start in range(0, len(files), AT_ONCE):
        some, read = range(start, min(start + AT_ONCE, len(files))), dict[int, Tensor]()
        for number in some:
            try:
                read[number] = extractor.network.read(files[number])
            except LangevinError:
                continue
        if read:
            values[list(read)] = extractor.network.features(list(read.values())).float()
        for _ in some:
            advance()
    return values


def why_damaged(path: Path, extractor: Extractor) -> str:
    """What reading the picture says; it is read once more, as the cache does not keep that."""
    try:
        extractor.network.read(path)
    except LangevinError as error:
        return str(error)
    return "its features are no numbers"
