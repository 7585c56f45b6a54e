"""The pictures of captioned images in a folder: each found by its name, none outside the folder."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import LangevinError
from ..files import inside

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
"""Endings of the files that are pictures."""


@dataclass(frozen=True)
class PictureFolder:
    """Paths of pictures by the names that captions give them."""

    paths: dict[str, Path]
    missing: tuple[str, ...] = ()
    """Names without a picture."""
    unnamed: tuple[str, ...] = ()
    """Pictures that no caption names."""

    @property
    def problem(self) -> str:
        """What does not fit together, in words; empty if all does."""
        if self.missing:
            whole = len(self.missing) + len(self.paths)
            return (f"{len(self.missing):,} of {whole:,} images with captions have no picture, "
                    f"first {self.missing[0]!r}")
        if self.unnamed:
            whole = len(self.unnamed) + len(self.paths)
            return (f"{len(self.unnamed):,} of {whole:,} pictures have no captions, first "
                    f"{self.unnamed[0]!r}")
        return ""


def find_pictures(
    folder: Path, names: Iterable[str], known: Collection[str] = ()
) -> PictureFolder:
    """The picture of each name: at that place in the folder, or alone of its file's name below it.

    A name without an ending is that of the one picture which has it before its ending. A name that
    leads out of the folder is refused, be it by a link. Pictures of other `known` names have
    captions, too.
    """
    if not folder.is_dir():
        raise LangevinError(f"expected a folder of pictures at {folder}, found "
                            f"{'a file' if folder.exists() else 'nothing'}; pass the folder that "
                            f"has them by --images")
    there = list_pictures(folder)
    below: dict[str, list[str]] = {}
    for place in there:
        for short in (PurePosixPath(place).name, PurePosixPath(place).stem):
            below.setdefault(short, []).append(place)
    paths, missing = dict[str, Path](), list[str]()
    for name in names:
        place = safe_place(folder, name)
        if place not in there:
            alike = below.get(PurePosixPath(place).name, [])
            place = alike[0] if len(alike) == 1 else place
        if place in there or (folder / place).is_file():
            paths[name] = inside(folder, place)
        else:
            missing.append(name)
    taken = {path.relative_to(folder).as_posix() for path in paths.values()}
    others = {PurePosixPath(safe_place(folder, name)).name for name in known}
    unnamed = tuple(sorted(
        place for place in there - taken
        if not others & {PurePosixPath(place).name, PurePosixPath(place).stem}
    ))
    if not there and not paths:
        raise LangevinError(f"expected pictures in {folder}, found none; pass the folder that has "
                            f"them by --images")
    return PictureFolder(paths, tuple(missing), unnamed)


def list_pictures(folder: Path) -> set[str]:
    """The pictures in a folder and below, as paths from there; no link to a folder is followed."""
    found = set[str]()
    for above, _, files in os.walk(folder):
        inner = Path(above).relative_to(folder)
        found |= {(inner / name).as_posix() for name in files
                  if name.lower().endswith(PICTURES) and not name.startswith(".")}
    return found


def safe_place(folder: Path, name: str) -> str:
    """A name from a file as a place in the folder; refused where it leads elsewhere."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or "\0" in name or Path(name).is_absolute():
        raise LangevinError(f"expected names of pictures in {folder}, got {name[:80]!r}, which "
                            f"leads out of it; mend the captions")
    return place.as_posix()
