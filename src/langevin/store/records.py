"""JSON of ours: written with its checksum, read into a model, or refused by file and key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from ..errors import LangevinError
from ..files import read_bytes, write_atomic

SUM = "sha256"
"""The key of the checksum, which is over all other keys."""
LARGEST = 1 << 28
"""Bytes of the longest file of ours that is read as JSON: vocabularies of millions of words."""
BRING_BACK = "bring the file back as it was written"


class Record(BaseModel):
    """What lies on disk as JSON: frozen, no foreign keys, no other types, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    NEWEST: ClassVar[int] = 1
    """The number of the format that we write, in the key `format` of what has one."""
    SEALED_SINCE: ClassVar[int] = 1 << 30
    """The first format that always carries its checksum; older files may."""

    @classmethod
    def upgrade(cls, content: dict[str, Any]) -> dict[str, Any]:
        """The same content in the newest format."""
        return content

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; what is absent is left out."""
        return self.model_dump(mode="json", exclude_none=True)


R = TypeVar("R", bound=Record)


def seal(content: Mapping[str, Any]) -> str:
    """The checksum of a JSON object: of its values, not of how they are written."""
    text = json.dumps({key: value for key, value in content.items() if key != SUM}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def write_json(path: Path, content: Any) -> None:
    """As it is, without a checksum: for what users may edit."""
    write_atomic(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """A JSON object with its checksum."""
    write_json(path, {**content, SUM: seal(content)})


def write_record(path: Path, record: Record) -> None:
    write_sealed(path, record.to_dict())


def read_sealed(path: Path, remedy: str = BRING_BACK) -> dict[str, Any]:
    """A JSON object without its checksum, which is compared; files of older versions have none."""
    return open_seal(read_bytes(path, LARGEST, instead=remedy), path, remedy)


def read_record(path: Path, model: type[R], remedy: str = BRING_BACK) -> R:
    """A file as a model. The remedy ends the refusal of one that does not fit."""
    return parse_record(read_bytes(path, LARGEST, instead=remedy), path, model, remedy)


def parse_record(
    raw: bytes, source: Path, model: type[R], remedy: str = BRING_BACK,
) -> R:
    """What stands in a file as a model; its checksum is compared, a newer format is refused."""
    sealed = json_object(raw, source, remedy)
    number = sealed.get("format", 1)
    if type(number) is not int or number < 1:
        raise LangevinError(f"expected the number of a format for format in {source}, got "
                            f"{number!r:.80}; {remedy}")
    if number > model.NEWEST:
        raise LangevinError(f"expected format {model.NEWEST} or older in {source}, got format "
                            f"{number}; open it by the newer langevin that wrote it")
    if number >= model.SEALED_SINCE and SUM not in sealed:
        raise LangevinError(f"expected {SUM} in {source}, found none; {remedy}")
    content = model.upgrade(open_seal(raw, source, remedy))
    return fit(json.dumps(content).encode(), source, model, remedy)


def fit(raw: bytes, source: Path | str, model: type[R], remedy: str = BRING_BACK) -> R:
    """JSON as a model, refused by key."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise LangevinError(explain_mismatch(error, source, remedy)) from None


def explain_mismatch(error: ValidationError, source: Path | str, remedy: str) -> str:
    """One line about the first thing that does not fit."""
    problem = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"]) or "the whole of it"
    if problem["type"] == "missing":
        return f"expected {key} in {source}, found none; {remedy}"
    if problem["type"] == "extra_forbidden":
        return f"expected no {key!a:.80} in {source}, as langevin writes none; {remedy}"
    message = problem["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"expected {key} in {source} to be {message}, got {problem['input']!a:.80}; {remedy}"


def json_object(raw: bytes, source: Path, remedy: str) -> dict[str, Any]:
    """The JSON object that stands in a file; it is nested 200 deep at most."""
    try:
        content = from_json(raw, allow_inf_nan=True)
    except ValueError as error:
        raise LangevinError(f"expected JSON in {source}, it cannot be read ({error}); "
                            f"{remedy}") from None
    if not isinstance(content, dict):
        raise LangevinError(f"expected a JSON object in {source}, got {content!a:.80}; {remedy}")
    return content


def open_seal(raw: bytes, source: Path, remedy: str) -> dict[str, Any]:
    """Compare the checksum, where there is one, and take it off."""
    content = json_object(raw, source, remedy)
    if SUM in content and content.pop(SUM) != seal(content):
        raise LangevinError(f"{source} was changed after it was written (its checksum differs); "
                            f"{remedy}")
    return content
