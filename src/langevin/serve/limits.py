"""How much one request may ask for, and how much may wait. All are told at /v1/models."""

from __future__ import annotations

from dataclasses import dataclass

from ..posterior.scores import Result
from .problems import Problem


@dataclass(frozen=True)
class Limits(Result):
    """They suit a small machine."""

    body: int = 4_000_000
    """Bytes of a request."""
    text: int = 20_000
    """Characters of one text."""
    texts: int = 1_000
    """Texts of one request."""
    top: int = 1_000
    """Continuations that are named."""
    tokens: int = 2_000
    """To generate."""
    beam: int = 20
    pixels: int = 40_000_000
    """Of a picture."""
    seconds: float = 60.0
    """Of one request: to send its body, and to wait for the answer."""
    waiting: int = 256
    """Requests that may wait in one queue."""

    def check_text(self, text: str) -> None:
        if len(text) > self.text:
            raise Problem(413, f"a text of at most {self.text:,} characters", f"{len(text):,}",
                          "send it in pieces")  # fmt: skip

    def check_texts(self, texts: list[str]) -> None:
        if not 1 <= len(texts) <= self.texts:
            raise Problem(422, f"1 to {self.texts:,} texts", f"{len(texts):,}", "send some at a time")
        for text in texts:
            self.check_text(text)

    def check_number(self, name: str, value: int, most: int) -> None:
        if value > most:
            raise Problem(422, f"{name} of at most {most:,}", f"{value:,}", "ask for less")

    def check_waiting(self, waiting: int) -> None:
        if waiting >= self.waiting:
            raise Problem(503, f"at most {self.waiting} requests in the queue", "more",
                          "try again in a second")  # fmt: skip
