"""Text ↔ token numbers, at the level of bytes, characters or words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import LangevinError
from ..files import decode_utf8

LEVELS = ("byte", "char", "word")
UNKNOWN, END = "<unk>", "<eos>"


class Vocabulary:
    """A fixed, ordered set of tokens. Bytes are kept as one-character strings, chr(0) … chr(255).

    Words are what white space separates. A line is a sentence and ends with the token `<eos>`,
    which also stands before the next one as its start; in *running* text line ends are white space
    like any other, and nothing marks sentences. Words outside the vocabulary become `<unk>`; bytes
    and characters outside it are an error.
    """

    def __init__(self, level: str, tokens: list[str], *, running: bool = False) -> None:
        if level not in LEVELS:
            raise LangevinError(f"level must be one of {', '.join(LEVELS)}, got {level!r}")
        if len(set(tokens)) != len(tokens) or not tokens:
            raise LangevinError(f"a vocabulary needs distinct tokens, got {len(tokens)} with "
                                f"{len(set(tokens))} distinct")
        self.level, self.tokens, self.running = level, tokens, running
        self.numbers = {token: number for number, token in enumerate(tokens)}

    @classmethod
    def build(
        cls, raw: bytes, level: str, *, min_count: int = 1, max_size: int | None = None,
        running: bool = False,
    ) -> Vocabulary:
        """The tokens of a text: bytes and characters in order, words as `of_text` has them."""
        counts = Counter(split(raw, level, running))
        if level != "word":
            return cls(level, sorted(counts))
        return cls.of_text(counts, min_count=min_count, max_size=max_size, running=running)

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

    def encode(self, raw: bytes) -> Tensor:
        """Token numbers of a text, as a LongTensor."""
        if self.level != "byte":
            return self.encode_tokens(split(raw, self.level, self.running))
        table = np.full(256, -1)
        for token, number in self.numbers.items():
            table[ord(token)] = number
        numbers = table[np.frombuffer(raw, dtype=np.uint8)]
        if (numbers < 0).any():
            self.refuse(chr(raw[int((numbers < 0).argmax())]))
        return torch.from_numpy(numbers)

    def encode_tokens(self, tokens: Sequence[str]) -> Tensor:
        """Numbers of a text that was cut before, as a LongTensor."""
        fallback = self.numbers.get(UNKNOWN) if self.level == "word" else None
        found = [self.numbers.get(token, fallback) for token in tokens]
        if None in found:
            self.refuse(tokens[found.index(None)])
        return torch.tensor(found, dtype=torch.long)

    def refuse(self, token: str) -> None:
        raise LangevinError(
            f"the text has a {self.level} {token!r} that is not among the {len(self)} of the "
            f"model's vocabulary; train on a text that has it, or remove it"
        )

    def decode(self, numbers: Tensor | Iterable[int]) -> bytes:
        """The text of these token numbers; for bytes and characters exactly what was encoded."""
        tokens = [self.tokens[int(number)] for number in numbers]
        if self.level == "byte":
            return "".join(tokens).encode("latin-1")
        if self.level == "char":
            return "".join(tokens).encode()
        text = " ".join(tokens)
        for end in (f" {END} ", f" {END}", f"{END} "):
            text = text.replace(end, "\n")
        return text.encode()

    def token_text(self, number: int) -> str:
        """One token by itself; a byte that is only a part of a letter as its number, \\xc3."""
        return self.decode([number]).decode("utf-8", "backslashreplace")

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Vocabulary:
        return cls(stored["level"], stored["tokens"], running=stored.get("running", False))

    def to_json(self) -> dict[str, Any]:
        return {"level": self.level, "running": self.running, "tokens": self.tokens}


def split(raw: bytes, level: str, running: bool = False) -> list[str]:
    """Cut a text into its tokens."""
    if level == "byte":
        return list(raw.decode("latin-1"))
    instead = "convert the file to UTF-8 or use level 'byte'"
    text = decode_utf8(raw, "the text", encoding="utf-8", instead=instead)
    if level == "char":
        return list(text)
    if running:
        return text.split()
    lines = text.removesuffix("\n").split("\n")
    return [token for line in lines for token in [*line.split(), END]]
