"""A text, chunk after chunk: its bytes, its letters, its words. Never all of it at once."""

from __future__ import annotations

import io
from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from ..errors import LangevinError
from ..files import open_regular, read_bytes

CHUNK = 2**20
"""Bytes that are read at once."""


@dataclass(frozen=True)
class Text:
    """A text in a file or in memory."""

    source: Path | bytes

    def chunks(self) -> Iterator[bytes]:
        """Its bytes, a few at a time."""
        with self.open() as file:
            while chunk := file.read(CHUNK):
                yield chunk

    def open(self) -> BinaryIO:
        """To read from its beginning."""
        if isinstance(self.source, bytes):
            return io.BytesIO(self.source)
        return open_regular(self.source)

    def read(self) -> bytes:
        """All of it at once, for texts that are known to be short."""
        return read_bytes(self.source) if isinstance(self.source, Path) else self.source


def bytes_of(text: str) -> bytes:
    """In UTF-8; what is none in a command line comes back as the bytes that it was."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise LangevinError(f"expected whole letters, got half of one, {text[error.start]!a}, at "
                            f"{error.start}; remove it") from None


def chunks_of(text: Text | bytes) -> Iterator[bytes]:
    return (text if isinstance(text, Text) else Text(text)).chunks()


def letters_of(text: Text | bytes) -> Iterator[str]:
    """Its letters, from UTF-8; another encoding is refused with the place of the first byte."""
    decoder, before = getincrementaldecoder("utf-8")(), 0
    for chunk in chain(chunks_of(text), [b""]):
        held = len(decoder.getstate()[0])
        try:
            yield decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise LangevinError(
                f"expected UTF-8 in the text, got the byte {error.object[error.start]:#04x} at "
                f"{before - held + error.start}; convert the file to UTF-8 or use level 'byte'"
            ) from None
        before += len(chunk)


def words_in(text: Text | bytes, end: str | None) -> Iterator[list[str]]:
    """What white space separates; after each line comes the token `end`, if there is one."""
    mark = f" {end} " if end else " "
    rest, open_line = "", end is not None
    for letters in letters_of(text):
        rest += letters
        cut = max(rest.rfind("\n"), rest.rfind(" ")) + 1
        if cut:
            open_line = end is not None and rest[cut - 1] != "\n"
            yield rest[:cut].replace("\n", mark).split()
            rest = rest[cut:]
    if rest or open_line:
        yield f"{rest}{mark}".split()
