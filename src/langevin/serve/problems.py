"""What is answered where a request cannot be: a status, and expected, got, do. Never a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LangevinError


class Problem(Exception):
    """Ends a request with this status; the words say what would be answered."""

    def __init__(self, status: int, expected: str, got: str, do: str) -> None:
        super().__init__(f"expected {expected}, got {got}; {do}")
        self.status, self.expected, self.got, self.do = status, expected, got, do
        self.headers = {"Retry-After": "1"} if status == 503 else {}

    def to_dict(self) -> dict[str, Any]:
        return {"error": {"expected": self.expected, "got": self.got, "do": self.do}}


def of_refusal(error: LangevinError, secrets: Sequence[str]) -> Problem:
    """A refusal of the library in the same form, without the paths that it may name."""
    message = str(error)
    for path in sorted(secrets, key=len, reverse=True):
        message = message.replace(path, "the model")
    wanted, _, rest = message.partition(", got ")
    if not rest:
        return Problem(422, "a request that this model can answer", message, "change it")
    got, _, do = rest.partition("; ")
    return Problem(422, wanted.removeprefix("expected "), got, do or "change it")


def of_validation(errors: Sequence[Any]) -> Problem:
    """What is wrong with a body, the first of all."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    shown = repr(first.get("input"))
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    return Problem(422, f"{place}: {first['msg']}", shown[:80] + more, "see /openapi.json")
