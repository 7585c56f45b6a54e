"""Where texts come from: the embedded War and Peace, or a file of the user's."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

from ..errors import LangevinError

WAR_AND_PEACE = "war_and_peace"
WAR_AND_PEACE_SHA256 = "fb66ba999dafe24017cdd59e04c56d385a9c8466993d374fd4c6f08b2142985e"


def read_corpus(name_or_path: str) -> bytes:
    """The bytes of the embedded corpus, or of the file at this path, checked to be usable text."""
    if name_or_path == WAR_AND_PEACE:
        return read_war_and_peace()
    path = Path(name_or_path)
    if path.is_dir() or not path.exists():
        kind = "a folder" if path.is_dir() else "nothing"
        raise LangevinError(f"expected a text file at {path}, found {kind}; pass a file or {WAR_AND_PEACE!r}")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise LangevinError(f"cannot read {path}: {error.strerror}; check its permissions") from None
    if not raw.strip():
        raise LangevinError(f"expected text in {path}, it is empty; pass a file with text in it")
    if b"\0" in raw:
        raise LangevinError(f"expected text in {path}, found zero bytes as in a binary file; pass a text file")
    return raw


def read_war_and_peace() -> bytes:
    """Tolstoy's novel as char-rnn distributed it, bytes untouched (BOM and CR LF included): 87 distinct bytes."""
    raw = lzma.decompress((Path(__file__).parent / "war_and_peace.txt.xz").read_bytes())
    if sha256(raw) != WAR_AND_PEACE_SHA256:
        raise LangevinError("the embedded War and Peace is damaged (its hash differs); install langevin again")
    return raw


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
