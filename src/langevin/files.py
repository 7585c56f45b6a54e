"""Writing a file so that it is whole or absent, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .errors import LangevinError


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
            f"free some space or choose another folder. What was written before is whole."
        ) from error
