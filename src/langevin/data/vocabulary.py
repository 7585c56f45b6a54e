"""Text ↔ token numbers, at the level of bytes, characters or words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import LangevinError
from .display import letters_of_bytes, visible
from .text import Text, bytes_of, chunks_of, letters_of, words_in

LEVELS = ("byte", "char", "word")
UNKNOWN, END = "<unk>", "<eos>"
REPLACEMENT = "\ufffd"
"""What a character outside the vocabulary is decoded to."""
CODES = 0x110000
"""How many characters Unicode has room for."""
SMALL = (np.uint8, np.int16, np.int32)
"""Types of token numbers that are kept; batches are widened."""


@dataclass(frozen=True)
class SpelledText:
    """Token numbers of a short text, and the text's own word at each place that became `<unk>`."""

    tokens: Tensor
    unknown: dict[int, str] = field(default_factory=dict)


class Vocabulary:
    """A fixed, ordered set of tokens. Bytes are kept as one-character strings, chr(0) … chr(255).

    Words are what white space separates. A line is a sentence and ends with the token `<eos>`,
    which also stands before the next one as its start; in *running* text line ends are white space
    like any other, and nothing marks sentences. Words and characters outside the vocabulary become
    `<unk>` where it has that; else they are an error, as are bytes that old vocabularies lack.
    """

    def __init__(self, level: str, tokens: list[str], *, running: bool = False) -> None:
        if level not in LEVELS:
            raise LangevinError(f"level must be one of {', '.join(LEVELS)}, got {level!r}")
        if len(set(tokens)) != len(tokens) or not tokens:
            raise LangevinError(f"a vocabulary needs distinct tokens, got {len(tokens)} with "
                                f"{len(set(tokens))} distinct")
        largest = {"byte": 256, "char": CODES, "word": 0}[level]
        for token in tokens if largest else ():
            one = len(token) == 1 and ord(token) < largest
            if not one and (level, token) != ("char", UNKNOWN):
                raise LangevinError(f"expected {level}s in a vocabulary of {level}s, got {token!r}")
        self.level, self.tokens, self.running = level, tokens, running
        self.numbers = {token: number for number, token in enumerate(tokens)}

    @classmethod
    def build(
        cls, text: Text | bytes, level: str, *, min_count: int = 1, max_size: int | None = None,
        running: bool = False,
    ) -> Vocabulary:
        """All 256 bytes, the characters of a text with `<unk>`, or its words as `of_text` has them.

        Characters have the line end among them in any case, as the place where a text starts.
        """
        if level == "byte":
            return cls(level, [chr(number) for number in range(256)])
        if level == "char":
            counts = np.zeros(CODES, dtype=np.int64)
            for letters in letters_of(text):
                counts += np.bincount(codes_of(letters), minlength=CODES)
            seen = {chr(code) for code in counts.nonzero()[0].tolist()}
            return cls(level, [*sorted(seen | {"\n"}), UNKNOWN])
        words: Counter[str] = Counter()
        for block in words_in(text, None if running else END):
            words.update(block)
        return cls.of_text(words, min_count=min_count, max_size=max_size, running=running)

    @classmethod
    def of_seen_bytes(cls, text: Text | bytes) -> Vocabulary:
        """Only the bytes that a text has, as char-rnn and the paper count them."""
        return cls("byte", sorted({chr(byte) for chunk in chunks_of(text) for byte in set(chunk)}))

    @classmethod
    def of_text(
        cls, counts: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None,
        running: bool = False, unknown: bool = False,
    ) -> Vocabulary:
        """Words and `<eos>` by falling frequency, as many as `of_words` keeps.

        `<unk>` joins them where some were cut, so that every word has a place, or if it is wanted
        in any case.
        """
        marks = {END} & counts.keys()
        frequent = sum(count >= min_count or token in marks for token, count in counts.items())
        too_many = max_size is not None and frequent > max_size
        if unknown or too_many or frequent < len(counts):
            marks.add(UNKNOWN)
        found = cls.of_words(counts, min_count=min_count, max_size=max_size, first=sorted(marks))
        ordered = sorted(found.tokens, key=lambda token: (-counts.get(token, 0), token))
        return cls("word", ordered, running=running)

    @classmethod
    def of_words(
        cls, counts: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None,
        first: Sequence[str] = (), last: Sequence[str] = (),
    ) -> Vocabulary:
        """The marks `first`, words by falling frequency, the marks `last`.

        Left out are words seen less often than `min_count`, and the rarest beyond `max_size`
        tokens in all.
        """
        marks = {*first, *last}
        words = [word for word in counts if counts[word] >= min_count and word not in marks]
        words.sort(key=lambda word: (-counts[word], word))
        room = None if max_size is None else max(0, max_size - len(marks))
        return cls("word", [*first, *words[:room], *last])

    @property
    def start(self) -> int:
        """The token before the first of a text: a line end, or what is nearest to it."""
        marks = (END, UNKNOWN) if self.level == "word" else ("\n", " ")
        return next((self.numbers[mark] for mark in marks if mark in self.numbers), 0)

    @property
    def line_end(self) -> str | None:
        """The token that ends a line of words, but not in running text."""
        return None if self.running else END

    @property
    def unknown(self) -> int | None:
        """The number of `<unk>`, which bytes never have."""
        return self.numbers.get(UNKNOWN) if self.level != "byte" else None

    def encode(self, raw: bytes) -> Tensor:
        """Token numbers of a text, as a LongTensor."""
        return self.encode_text(raw).long()

    def encode_text(self, text: Text | bytes) -> Tensor:
        """The same for a text of any length, in the smallest type that has room for the numbers."""
        kind = next(kind for kind in SMALL if len(self) - 1 <= np.iinfo(kind).max)
        buffer = bytearray()
        blocks = self.word_blocks(text) if self.level == "word" else self.letter_blocks(text)
        for numbers in blocks:
            buffer += numbers.astype(kind).tobytes()
        return torch.from_numpy(np.frombuffer(buffer, kind))

    def letter_blocks(self, text: Text | bytes) -> Iterator[NDArray[np.int32]]:
        """Numbers of bytes or characters, by a table of all there can be."""
        by_bytes, unknown = self.level == "byte", self.unknown
        table = np.full(256 if by_bytes else CODES, -1 if unknown is None else unknown, np.int32)
        for token, number in self.numbers.items():
            if number != unknown:
                table[ord(token)] = number
        for part in chunks_of(text) if by_bytes else letters_of(text):
            codes = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else codes_of(part)
            numbers = table[codes]
            if unknown is None and (numbers < 0).any():
                self.refuse(chr(codes[(numbers < 0).argmax()]))
            yield numbers

    def word_blocks(self, text: Text | bytes) -> Iterator[NDArray[np.int32]]:
        unknown, get = -1 if self.unknown is None else self.unknown, self.numbers.get
        for block in words_in(text, self.line_end):
            numbers = np.fromiter(map(get, block, repeat(unknown)), np.int32, len(block))
            if unknown < 0 and (numbers < 0).any():
                self.refuse(block[int((numbers < 0).argmax())])
            yield numbers

    def encode_tokens(self, tokens: Sequence[str]) -> Tensor:
        """Numbers of a text that was cut before, as a LongTensor."""
        found = [self.numbers.get(token, self.unknown) for token in tokens]
        if None in found:
            self.refuse(tokens[found.index(None)])
        return torch.tensor(found, dtype=torch.long)

    def spell(self, text: str) -> SpelledText:
        """A text that is to be continued or scored, after the level's start.

        The last line of words is left open: it has no end yet, unless the text ends with one.
        """
        raw = bytes_of(text)
        if self.level == "byte":
            tokens = list(raw.decode("latin-1"))
        elif self.level == "char":
            tokens = list(text)
        else:
            tokens = [word for block in words_in(raw, self.line_end) for word in block]
            if not self.running and not text.endswith("\n"):
                tokens.pop()
        start = torch.tensor([self.start])
        unknown = {at: token for at, token in enumerate(tokens, 1) if token not in self.numbers}
        return SpelledText(torch.cat([start, self.encode_tokens(tokens)]), unknown)

    def refuse(self, token: str) -> None:
        raise LangevinError(
            f"the text has a {self.level} {token!r} that is not among the {len(self)} of the "
            f"model's vocabulary; train on a text that has it, or remove it"
        )

    def unknown_share(self, tokens: Tensor) -> float:
        """Which share of the words or characters is `<unk>`; ends of lines do not count."""
        if self.unknown is None:
            return 0.0
        ends = (tokens == self.numbers[END]).sum() if END in self.numbers else torch.tensor(0)
        items = tokens.numel() - int(ends)
        return int((tokens == self.unknown).sum()) / items if items else 0.0

    def decode(self, numbers: Tensor | Iterable[int]) -> bytes:
        """The text of these token numbers; for bytes and characters exactly what was encoded.

        A character that was `<unk>` is decoded to the sign for one that cannot be shown.
        """
        tokens = [self.tokens[int(number)] for number in numbers]
        if self.level == "byte":
            return "".join(tokens).encode("latin-1")
        if self.level == "char":
            return "".join(REPLACEMENT if token == UNKNOWN else token for token in tokens).encode()
        return self.join_words(tokens)

    def join_words(self, words: Sequence[str]) -> bytes:
        """A text of words with single spaces, and line ends where END stands."""
        text = " ".join(words)
        for end in (f" {END} ", f" {END}", f"{END} "):
            text = text.replace(end, "\n")
        return text.encode()

    def byte_count(self, numbers: Tensor) -> int | None:
        """Of how many bytes this text was; None of words and of unknown characters, which cannot be
        turned back into what was read."""
        if self.level == "byte":
            return numbers.numel()
        if self.level == "word" or (self.unknown is not None and (numbers == self.unknown).any()):
            return None
        sizes = torch.tensor([len(token.encode()) for token in self.tokens])
        return int(sizes[numbers.long()].sum())

    def pieces(
        self, numbers: Tensor | Iterable[int], unknown: Mapping[int, str] | None = None
    ) -> list[str]:
        """A text as it is shown, one string for each token.

        A letter of several bytes stands at its first; its other bytes have empty strings. A byte
        that belongs to no letter is shown as its number, \\xc3. Signs that print nothing are made
        visible. A word that became `<unk>` is shown with it, if `unknown` has what stood at its
        place: <unk:snow>.
        """
        tokens = [self.tokens[int(number)] for number in numbers]
        if self.level == "byte":
            return letters_of_bytes("".join(tokens).encode("latin-1"))
        shown = [visible(token) for token in tokens]
        for place, word in (unknown or {}).items():
            shown[place] = f"<unk:{visible(word)}>"
        return shown

    def token_text(self, number: int) -> str:
        """One token by itself; a byte that is only a part of a letter as its number, \\xc3."""
        return self.pieces([number])[0]

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Vocabulary:
        return cls(stored["level"], stored["tokens"], running=stored.get("running", False))

    def to_json(self) -> dict[str, Any]:
        return {"level": self.level, "running": self.running, "tokens": self.tokens}


def number_words(text: Text | bytes, *, running: bool) -> tuple[Tensor, list[str]]:
    """The words of a text, numbered in the order in which they come, as int32; and their list."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    buffer = bytearray()
    for block in words_in(text, None if running else END):
        buffer += np.fromiter(map(numbers.__getitem__, block), np.int32, len(block)).tobytes()
    return torch.from_numpy(np.frombuffer(buffer, np.int32)), list(numbers)


def codes_of(letters: str) -> NDArray[np.uint32]:
    """The number of each character in Unicode."""
    return np.frombuffer(letters.encode("utf-32-le"), np.uint32)
