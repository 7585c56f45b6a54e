"""Faults of the disk and of the power, put between this process and its file operations.

Every call that changes what lies below a place is counted. At the one with the number of the fault
the process dies (before, in the middle or after it), or the disk is full from then on, or the power
is cut: then what was not flushed goes too. Of operations on names some first ones survive, in their
order, as file systems with a journal keep it; of bytes that were not flushed any number.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

KINDS = ("before", "middle", "after", "full", "power")
DIED = 137
"""The exit code of a process that a fault ended."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Disk:
    """Stands before `os` in a child process; `at` is the operation that fails, None to count."""

    place: Path
    at: int | None = None
    kind: str = "before"
    seed: int = 0
    count: int = 0
    full: bool = False
    unflushed: list[tuple[Path, Callable[[], None]]] = field(default_factory=list)
    """Operations on names: the folder whose list they changed, and how to undo them."""
    flushed_size: dict[Path, int] = field(default_factory=dict)
    """Of files that were written since they were flushed: what is safe of them."""

    def install(self) -> None:
        """For good: only for a process that ends soon."""
        self.plain = {name: getattr(os, name) for name in (
            "open", "write", "pwrite", "fsync", "ftruncate", "replace", "rename", "unlink",
            "mkdir", "rmdir", "fdopen")}
        os.open, os.fdopen = self.open, self.fdopen  # type: ignore[assignment]
        os.write, os.pwrite = self.write, self.pwrite
        os.fsync, os.ftruncate = self.fsync, self.ftruncate  # type: ignore[assignment]
        os.replace = os.rename = self.rename  # type: ignore[assignment]
        os.unlink = os.remove = self.unlink  # type: ignore[assignment]
        os.mkdir, os.rmdir = self.mkdir, self.rmdir  # type: ignore[assignment]

    def is_ours(self, path: Path | None) -> bool:
        return path is not None and path.is_relative_to(self.place)

    def path_of(self, target: Any) -> Path | None:
        if isinstance(target, int):
            try:
                return Path(f"/proc/self/fd/{target}").readlink()
            except OSError:
                return None
        return Path(os.path.abspath(os.fsdecode(target)))  # noqa: PTH100  # links stay

    def act(self, path: Path | None, do: Callable[[], Any], half: Callable[[], Any] = int,
            takes_space: bool = True) -> Any:
        """One operation, or the fault in its place."""
        if not self.is_ours(path):
            return do()
        self.count += 1
        if self.full and takes_space:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if self.at != self.count:
            return do()
        if self.kind == "full":
            self.full = True
            if not takes_space:
                return do()
            half()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if self.kind == "middle":
            half()
        elif self.kind in ("after", "power"):
            do()
        self.die()

    def die(self) -> NoReturn:
        if self.kind == "power":
            self.cut_power()
        os._exit(DIED)

    def cut_power(self) -> None:
        rng = random.Random(self.seed)
        survive = rng.randint(0, len(self.unflushed))
        for path, size in self.flushed_size.items():
            if path.is_file():
                now = path.stat().st_size
                os.truncate(path, rng.randint(min(size, now), now))
        for _, undo in reversed(self.unflushed[survive:]):
            undo()

    def named(self, folder: Path, undo: Callable[[], None]) -> None:
        self.unflushed.append((folder, undo))

    def open(self, path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        target = self.path_of(path)
        plain = self.plain["open"]
        if not flags & WRITING or not self.is_ours(target):
            return int(plain(path, flags, mode, **options))
        assert target is not None
        is_new = not os.path.lexists(target)
        descriptor = int(self.act(target, lambda: plain(path, flags, mode, **options)))
        if is_new:
            self.named(target.parent, lambda: self.plain["unlink"](target))
        return descriptor

    def fdopen(self, descriptor: int, mode: str = "r", *rest: Any, **options: Any) -> Any:
        file = self.plain["fdopen"](descriptor, mode, *rest, **options)
        return Written(self, file) if self.is_ours(self.path_of(descriptor)) else file

    def write(self, descriptor: int, content: Any) -> int:
        plain, path = self.plain["write"], self.path_of(descriptor)
        self.note_size(path)
        part = content[: len(content) // 2]
        return int(self.act(path, lambda: plain(descriptor, content),
                            lambda: plain(descriptor, part)))

    def pwrite(self, descriptor: int, content: Any, offset: int) -> int:
        plain = self.plain["pwrite"]
        return int(self.act(self.path_of(descriptor), lambda: plain(descriptor, content, offset)))

    def note_size(self, path: Path | None) -> None:
        if self.is_ours(path) and path is not None and path.is_file():
            self.flushed_size.setdefault(path, path.stat().st_size)

    def fsync(self, descriptor: int) -> None:
        path = self.path_of(descriptor)
        self.act(path, lambda: self.plain["fsync"](descriptor))
        if path is not None:
            self.flushed_size.pop(path, None)
            self.unflushed = [entry for entry in self.unflushed if entry[0] != path]

    def ftruncate(self, descriptor: int, length: int) -> None:
        path = self.path_of(descriptor)
        self.act(path, lambda: self.plain["ftruncate"](descriptor, length), takes_space=False)
        if path in self.flushed_size:
            self.flushed_size[path] = min(self.flushed_size[path], length)

    def rename(self, old: Any, new: Any, **options: Any) -> None:
        source, target = self.path_of(old), self.path_of(new)
        if not self.is_ours(target):
            self.plain["rename"](old, new)
            return
        assert source is not None
        assert target is not None
        before = target.read_bytes() if target.is_file() else None
        if source in self.flushed_size:
            self.flushed_size[target] = self.flushed_size.pop(source)

        def undo() -> None:
            self.plain["rename"](target, source)
            if before is not None:
                with target.open("wb") as file:
                    file.write(before)

        self.act(target, lambda: self.plain["replace"](old, new))
        self.named(target.parent, undo)

    def unlink(self, path: Any, **options: Any) -> None:
        target = self.path_of(path)
        before = target.read_bytes() if self.is_ours(target) and target is not None \
            and target.is_file() else None
        self.act(target, lambda: self.plain["unlink"](path, **options), takes_space=False)
        if before is not None and target is not None:
            self.named(target.parent, lambda: restore(target, before))

    def mkdir(self, path: Any, mode: int = 0o777, **options: Any) -> None:
        target = self.path_of(path)
        self.act(target, lambda: self.plain["mkdir"](path, mode, **options))
        if self.is_ours(target) and target is not None:
            self.named(target.parent, lambda: shutil.rmtree(target, ignore_errors=True))

    def rmdir(self, path: Any, **options: Any) -> None:
        target = self.path_of(path)
        self.act(target, lambda: self.plain["rmdir"](path, **options), takes_space=False)
        if self.is_ours(target) and target is not None:
            self.named(target.parent, lambda: target.mkdir(exist_ok=True))


def restore(path: Path, content: bytes) -> None:
    if path.parent.is_dir():
        with path.open("wb") as file:
            file.write(content)


class Written:
    """A buffered file whose writes are operations of the disk."""

    def __init__(self, disk: Disk, file: Any) -> None:
        self.disk, self.file = disk, file

    def write(self, content: bytes) -> int:
        path = self.disk.path_of(self.file.fileno())
        self.disk.note_size(path)
        return int(self.disk.act(path, lambda: self._put(content),
                                 lambda: self._put(content[: len(content) // 2])))

    def _put(self, content: bytes) -> int:
        written = int(self.file.write(content))
        self.file.flush()
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
