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
