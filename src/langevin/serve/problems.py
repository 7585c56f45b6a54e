"""What is answered where a request cannot be: a status, and expected, got, do. Never a path."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException

from ..errors import LangevinError


HEADERS = {503: {"retry-after": "1"}, 401: {"www-authenticate": "Bearer"}}


class Problem(HTTPException):
    """Ends a request with this status; the words say what would be answered.

    It is of Starlette's kind, so that it comes through what reads bodies.
    """

    def __init__(self, status: int, expected: str, got: str, do: str) -> None:
        headers = {"content-type": "application/json"} | HEADERS.get(status, {})
        super().__init__(status, f"expected {expected}, got {got}; {do}", headers)
        self.expected, self.got, self.do = expected, got, do

    def to_dict(self) -> dict[str, Any]:
        return {"error": {"expected": self.expected, "got": self.got, "do": self.do}}

    @property
    def body(self) -> bytes:
        """As JSON in ASCII: what came may hold halves of letters that UTF-8 does not know."""
        return json.dumps(self.to_dict()).encode("ascii")


PATH = re.compile(r"(?<![\w/.<])\.{0,2}/[^\s'\",;:]+")


def of_refusal(error: LangevinError, folders: Sequence[str]) -> Problem:
    """A refusal of the library in the same form, without the paths that it may name."""
    message = str(error)
    for folder in sorted(folders, key=len, reverse=True):
        message = message.replace(folder, "the model") if "/" in folder else message
    message = PATH.sub("a file of the server", message)
    wanted, _, rest = message.partition(", got ")
    if not rest:
        return Problem(422, "a request that this model can answer", message, "change it")
    got, _, do = rest.partition("; ")
    return Problem(422, wanted.removeprefix("expected "), got, do or "change it")


def of_validation(errors: Sequence[Any]) -> Problem:
    """What is wrong with a body, the first of all."""
    first = errors[0]
    place = ".".join(str(part)[:80] for part in first["loc"] if part != "body") or "the body"
    shown = repr(first.get("input"))
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    return Problem(422, f"{place}: {first['msg']}", shown[:80] + more, "see /openapi.json")


def of_failure() -> Problem:
    """Of something that is ours to mend."""
    return Problem(503, "an answer", "a failure of the server, which its log tells",
                   "try again, or tell who runs it")  # fmt: skip
