"""Files that are whole or absent; names that may be trusted; why there is none to read."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import LangevinError

A_FOLDER = "a folder"
IRREGULAR = "something that is no regular file (a pipe, a device, a socket)"
NEW = os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags that open a new file and nothing that is there already, be it a link."""
TEMPORARY = re.compile(r"\.(?P<target>.+)\.[0-9a-f]+\.tmp")
"""What `write_atomic` calls a file that is not whole yet."""


def no_file(path: Path) -> str:
    """What stands at a path where a file should be; empty if one is there."""
    try:
        if path.is_file():
            return ""
        return A_FOLDER if path.is_dir() else IRREGULAR if path.exists() else "not there"
    except OSError as error:  # a name that is too long, a folder that may not be entered
        return f"not to be had ({error.strerror})"


def write_atomic(path: Path, content: bytes) -> None:
    """A file with this content, or as it was before; see `whole_file`."""
    with whole_file(path, f" ({len(content):,} bytes)") as file:
        file.write(content)


@contextlib.contextmanager
def whole_file(path: Path, size: str = "") -> Iterator[BinaryIO]:
    """Write beside the target, flush to disk, rename over it, flush the folder.

    A failure leaves the old file. The temporary name is random and must be free, so that nothing
    which waits there, such as a link, is written to.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        make_folder(path.parent)
        descriptor = os.open(temporary, os.O_WRONLY | NEW, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise LangevinError(
            f"cannot write {path}{size}: {error.strerror}; "
            f"{'free some space or ' if error.errno == errno.ENOSPC else ''}choose another folder. "
            f"What was written before is whole."
        ) from error


def make_folder(path: Path) -> None:
    """Make a folder and those above it, and flush what each of them is listed in."""
    if path.is_symlink():  # to a folder that is not there any more
        path = path.resolve()
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Flush the list of a folder's files: what was renamed stays so after a power cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # it may be written but not listed; Windows opens none
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot do it
            raise
    finally:
        os.close(descriptor)


def listed_name(name: object, pattern: re.Pattern[str], source: Path) -> str:
    """A name that a file lists, if it is of the pattern of names that we give; never a path."""
    if isinstance(name, str) and pattern.fullmatch(name):
        return name
    raise LangevinError(
        f"expected names like those that langevin gives in {source}, got {name!r}; nothing was "
        f"read or removed there, bring back the file as it was written"
    )


def inside(folder: Path, name: str) -> Path:
    """The path of a name in a folder, refused where a link leads out of it."""
    path = folder / name
    parts = Path(name).parts
    if any(folder.joinpath(*parts[:end]).is_symlink() for end in range(1, len(parts) + 1)):
        try:
            stays = path.resolve().is_relative_to(folder.resolve())
        except (OSError, RuntimeError):  # links in a circle
            stays = False
        if not stays:
            raise LangevinError(
                f"expected {path} to be in its folder, it is a link that leads out of it; put in "
                f"its place what it leads to"
            )
    return path


def open_regular(
    path: Path, *, what: str = "a file", instead: str = "name a file that is there",
) -> BinaryIO:
    """A file to read from. A pipe would be waited for, a device may never end: they are refused."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise LangevinError(f"expected {what} at {path}, found {IRREGULAR}; {instead}")
        return path.open("rb")
    except ValueError:
        raise LangevinError(
            f"expected {what}, got a name with a zero byte in it, {str(path)!r}; {instead}"
        ) from None
    except OSError as error:
        missing = {errno.ENOENT: "nothing", errno.ENOTDIR: "nothing", errno.EISDIR: A_FOLDER}
        if found := missing.get(error.errno or 0):
            raise LangevinError(f"expected {what} at {path}, found {found}; {instead}") from None
        if error.errno == errno.ENAMETOOLONG:
            raise LangevinError(
                f"expected {what}, got a name that is too long for a file, {str(path)[:40]}…; "
                f"{instead}"
            ) from None
        raise LangevinError(
            f"cannot read {path}: {error.strerror}; check its permissions"
        ) from None


def read_bytes(
    path: Path, limit: int | None = None, *, what: str = "a file",
    instead: str = "name a file that is there",
) -> bytes:
    """What stands in a file, `limit` bytes at most.

    `what` should be there, and `instead` is what else will do.
    """
    with open_regular(path, what=what, instead=instead) as file:
        try:
            raw = file.read(-1 if limit is None else limit + 1)
        except OSError as error:  # a disk that fails
            raise LangevinError(f"cannot read {path}: {error.strerror}") from None
    if limit is not None and len(raw) > limit:
        raise LangevinError(f"expected at most {limit:,} bytes in {path}, it has more; {instead}")
    return raw


def read_utf8(
    path: Path, *, what: str = "a file", instead: str = "name a file that is there",
) -> str:
    """The text of a file in UTF-8, without the mark that may stand at its beginning."""
    return decode_utf8(read_bytes(path, what=what, instead=instead), str(path))


def decode_utf8(
    raw: bytes, source: str, *, encoding: str = "utf-8-sig", instead: str = "convert the file",
) -> str:
    """The text of bytes in UTF-8; others are refused with the place of the first one."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise LangevinError(
            f"expected UTF-8 in {source}, got the byte {raw[error.start]:#04x} at {error.start}; "
            f"{instead}"
        ) from None


def expect_file(path: Path, what: str, instead: str) -> None:
    """Refuse a path without a file for a reader that opens it by itself."""
    if problem := no_file(path):
        raise LangevinError(f"expected {what} {path}, which is {problem}; {instead}")
