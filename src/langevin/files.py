"""Writing a file so that it is whole or absent, whatever happens meanwhile; and why there is none to read."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from .errors import LangevinError

A_FOLDER = "a folder"


def no_file(path: Path) -> str:
    """What stands at a path where a file should be; empty if one is there."""
    try:
        return "" if path.is_file() else A_FOLDER if path.is_dir() else "not there"
    except OSError as error:  # a name that is too long, a folder that may not be entered
        return f"not to be had ({error.strerror})"


def write_atomic(path: Path, content: bytes) -> None:
    """Write beside the target, flush to disk, then rename over it. A failure leaves the old file as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise LangevinError(
            f"cannot write {path} ({len(content):,} bytes): {error.strerror}; "
            f"{'free some space or ' if error.errno == errno.ENOSPC else ''}choose another folder. What was written "
            f"before is whole."
        ) from error


def read_bytes(
    path: Path, limit: int | None = None, *, what: str = "a file",
    instead: str = "name a file that is there",
) -> bytes:
    """What stands in a file, `limit` bytes at most; `what` should be there, and `instead` what else will do."""
    try:
        with path.open("rb") as file:
            raw = file.read(-1 if limit is None else limit + 1)
    except OSError as error:
        missing = {errno.ENOENT: "nothing", errno.ENOTDIR: "nothing", errno.EISDIR: A_FOLDER}
        if found := missing.get(error.errno or 0):
            raise LangevinError(f"expected {what} at {path}, found {found}; {instead}") from None
        raise LangevinError(f"cannot read {path}: {error.strerror}; check its permissions") from None
    if limit is not None and len(raw) > limit:
        raise LangevinError(f"expected at most {limit:,} bytes in {path}, it has more; {instead}")
    return raw


def read_utf8(path: Path, *, what: str = "a file", instead: str = "name a file that is there") -> str:
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
            f"expected UTF-8 in {source}, got the byte {raw[error.start]:#04x} at {error.start}; {instead}"
        ) from None


def expect_file(path: Path, what: str, instead: str) -> None:
    """Refuse a path without a file for a reader that opens it by itself."""
    if problem := no_file(path):
        raise LangevinError(f"expected {what} {path}, which is {problem}; {instead}")
