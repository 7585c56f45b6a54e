"""In which encoding a file is, found without holding it: a guess that is said."""

from __future__ import annotations

import io
import logging
from codecs import getincrementaldecoder
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

from ..errors import LangevinError
from .text import Text

log = logging.getLogger("langevin")

MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True)
class Encoding:
    """How the bytes of a file are read as text, and what ends its lines."""

    name: str
    errors: str = "strict"
    line_feeds: bool = True
    """Whether there are any; else carriage returns end the lines."""

    def open(self, text: Text, newline: str = "") -> TextIO:
        """The file as text."""
        return io.TextIOWrapper(text.open(), self.name, self.errors, newline)


@dataclass(frozen=True)
class Survey:
    """What one pass over a text in a supposed encoding found."""

    fits: bool = True
    first_error: int = 0
    """The line of the first byte that is not in this encoding."""
    zeros: bool = False
    line_feeds: bool = False
    broken: int = 0
    foreign: int = 0
    """Signs beyond ASCII, those that stand for broken bytes among them."""


def find_encoding(text: Text, path: str) -> Encoding:
    """The encoding of a text, said when it is not UTF-8.

    A byte-order mark decides; then UTF-8; then UTF-16 where every other byte is mostly zero; then
    UTF-8 with a few broken bytes; then Windows-1252, and Latin-1, which fits any bytes.
    """
    for name in (*marked(text), "utf-8", "cp1252", "latin-1"):
        found, errors = survey(text, name), "strict"
        if not found.fits:
            if name != "utf-8":
                continue
            line = found.first_error
            found, errors = survey(text, name, "replace"), "replace"
            if found.foreign - found.broken <= 9 * found.broken:
                continue
            log.info("%s has bytes that are not UTF-8, the first in line %d; each is read as �",
                     path, line)
        if found.zeros:
            raise LangevinError(
                f"expected text in {path}, found zero bytes as in a binary file; pass a text file"
            )
        if name in ("cp1252", "latin-1"):
            log.info("%s is not UTF-8; read as %s, which is a guess: save it as UTF-8 if its "
                     "letters look wrong", path, name)
        elif name not in ("utf-8", "utf-8-sig"):
            log.info("%s is not UTF-8; read as %s", path, name)
        return Encoding(name, errors, found.line_feeds)
    raise AssertionError("latin-1 decodes everything")


def marked(text: Text) -> list[str]:
    """What the beginning says: a byte-order mark, or zeros in every other byte."""
    with text.open() as file:
        head = file.read(2000)
    names = [name for mark, name in MARKS.items() if head.startswith(mark)]
    zeros = [head[start::2].count(0) for start in (0, 1)]
    if max(zeros) > len(head) // 4:
        names.append("utf-16-le" if zeros[1] > zeros[0] else "utf-16-be")
    return names


def survey(text: Text, name: str, errors: str = "strict") -> Survey:
    """Read all of a text in an encoding; strictly, only up to the first byte that is not in it."""
    decoder, lines = getincrementaldecoder(name)(errors), 1
    zeros, line_feeds, broken, foreign = False, False, 0, 0
    for chunk in chain(text.chunks(), [b""]):
        try:
            part = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as problem:
            return Survey(False, lines + problem.object.count(b"\n", 0, problem.start))
        lines += chunk.count(b"\n")
        zeros, line_feeds = zeros or "\0" in part, line_feeds or "\n" in part
        if errors == "replace":
            broken += part.count("\ufffd")
            foreign += len(part) - len(part.encode("ascii", "ignore"))
    return Survey(True, 0, zeros, line_feeds, broken, foreign)
