"""The list of a folder's samples: a line of JSON for each, appended and flushed; never rewritten
unless samples are dropped."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from ..errors import LangevinError
from ..files import inside, read_bytes, sync_folder, write_atomic
from .manifest import SampleRecord
from .records import LARGEST, Record, fit, json_object, read_record

MANIFEST, OLD_MANIFEST = "manifest.jsonl", "manifest.json"
FORMAT = 2
"""The first line says it; format 1 was one JSON object, in a file of another name."""
REMEDY = "bring it back as it was written"
APPEND = os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Line(SampleRecord):
    """A sample as a line; the checksum is over the rest of it, lines put in by hand have none."""

    crc: str | None = None

    def record(self) -> SampleRecord:
        return SampleRecord(file=self.file, step=self.step, sha256=self.sha256, about=self.about)


class OldManifest(Record):
    """The list as versions up to 0.1.0 wrote it."""

    format: int = 1
    samples: tuple[SampleRecord, ...]


class Listing:
    """What a folder lists; `records` as it was when opened, and what was appended here since."""

    def __init__(self, folder: Path) -> None:
        self.path, self.old = folder / MANIFEST, folder / OLD_MANIFEST
        self.records: list[SampleRecord] = []
        self.end = self.size = 0
        """Bytes of whole lines, and of all: a line that was cut off does not count."""
        if self.path.exists() or self.path.is_symlink():
            self._read(read_bytes(inside(folder, MANIFEST), LARGEST, instead=REMEDY))
        elif self.old.exists():
            self.records = list(read_record(inside(folder, OLD_MANIFEST), OldManifest).samples)

    @property
    def source(self) -> Path:
        """The file that lists, or will."""
        return self.path if self.end or not self.old.exists() else self.old

    def _read(self, raw: bytes) -> None:
        self.size, self.end = len(raw), raw.rfind(b"\n") + 1
        header, *lines = raw[: self.end].split(b"\n")[:-1] or [b""]
        number = json_object(header, self.path, REMEDY).get("format")
        if number != FORMAT or type(number) is not int:
            raise LangevinError(f"expected format {FORMAT} or older in {self.path}, got format "
                                f"{number!r:.20}; open it by the newer langevin that wrote it")
        self.records = [self._parse(line, number) for number, line in enumerate(lines, 2)]

    def _parse(self, raw: bytes, number: int) -> SampleRecord:
        line = fit(raw, f"line {number} of {self.path}", Line, REMEDY)
        if line.crc is not None and line.crc != checksum(line.record()):
            raise LangevinError(f"line {number} of {self.path} was changed after it was written "
                                f"(its checksum differs); {REMEDY}")
        return line.record()

    def append(self, record: SampleRecord) -> None:
        """One more line, on disk when this returns. If it fails the list is as it was."""
        if not self.end:
            self.replace([*self.records, record])
            return
        line = write_line(record)
        try:
            descriptor = os.open(self.path, APPEND)
        except OSError as error:
            raise self._gone(error) from None
        try:
            if os.fstat(descriptor).st_size != self.size:
                raise LangevinError(f"{self.path} was written by somebody else since it was read; "
                                    f"open the folder anew")
            try:
                os.ftruncate(descriptor, self.end)  # what was cut off goes
                self.size = self.end
                write_all(descriptor, line)
                os.fsync(descriptor)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, self.end)
                raise LangevinError(f"cannot write {self.path}: {error.strerror}; free some space "
                                    f"or choose another folder. What was written before is "
                                    f"whole.") from error
        finally:
            os.close(descriptor)
        self.size = self.end = self.end + len(line)
        self.records.append(record)

    def replace(self, records: Iterable[SampleRecord]) -> None:
        """Another list in the place of this one, and of one of an older format."""
        records = list(records)
        header = json.dumps({"format": FORMAT}).encode() + b"\n"
        content = header + b"".join(map(write_line, records))
        write_atomic(self.path, content)
        self.records, self.size, self.end = records, len(content), len(content)
        if self.old.exists():
            self.old.unlink()
            sync_folder(self.old.parent)

    def _gone(self, error: OSError) -> LangevinError:
        return LangevinError(f"cannot write {self.path}: {error.strerror}; the folder was moved or "
                             f"changed meanwhile. Go on where it is now")


def write_line(record: SampleRecord) -> bytes:
    return json.dumps(record.to_dict() | {"crc": checksum(record)}).encode() + b"\n"


def checksum(record: SampleRecord) -> str:
    return f"{zlib.crc32(json.dumps(record.to_dict(), sort_keys=True).encode()):08x}"


def write_all(descriptor: int, content: bytes) -> None:
    """A disk may take a part only."""
    while content:
        content = content[os.write(descriptor, content):]
