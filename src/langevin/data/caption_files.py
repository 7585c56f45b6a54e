"""Files of captions → what was written about each image, and its split where the file says one.

Token lines (`image.jpg#0<TAB>caption`); a table with the columns image, caption and, if there,
split (CSV, TSV, JSON lines); COCO's JSON; Karpathy's JSON. What a file holds says which it is, not
its name alone: tables are often called captions.txt.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import decode_utf8
from .encoding import find_encoding
from .formats import Row, cell_rows, json_rows, kind_of_table
from .tables import LONGEST_FIELD, refuse_half_signs
from .text import Text

IMAGE, CAPTION, SPLIT = "image", "caption", "split"
"""The columns of a table."""
SPLIT_NAMES = {
    "train": "train", "training": "train", "restval": "train", "val": "valid", "valid": "valid",
    "validation": "valid", "dev": "valid", "test": "test", "testing": "test",
}
SHAPES = (
    "with images and annotations, as COCO's, or images with filename and sentences, as Karpathy's"
)
KNOWN_SPLITS = "train, valid (or val, dev) and test"


@dataclass
class CaptionFile:
    """The captions of each image as they were written, and the images of each split it names."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    splits: dict[str, list[str]] = field(default_factory=dict)

    def add(self, image: str, captions: Iterable[str], split: str | None = None) -> None:
        if split is not None and image not in self.texts:
            self.splits.setdefault(split, []).append(image)
        self.texts.setdefault(image, []).extend(captions)


def parse_captions(path: Path, raw: bytes) -> CaptionFile:
    """The contents of a file of any of the kinds."""
    shape = shape_of(path, raw)
    if shape == "object":
        return parse_json_captions(path, raw)
    return parse_token_lines(path, raw) if shape == "lines" else parse_table(path, raw, shape)


def shape_of(path: Path, raw: bytes) -> str:
    """lines, csv, tsv, json (a row an object) or object: one that is all of the file."""
    kind = kind_of_table(str(path))
    if kind == "json" and path.suffix.lower() == ".json" and raw.lstrip()[:1] != b"[":
        return "object"
    if kind != "lines":
        return kind
    first = raw.lstrip()[:1000].decode("utf-8-sig", "replace").partition("\n")[0]
    for kind, sign in {"tsv": "\t", "csv": ","}.items():
        if {IMAGE, CAPTION} <= {cell.strip(' "\r').lower() for cell in first.split(sign)}:
            return kind
    return "lines"


def parse_token_lines(path: Path, raw: bytes) -> CaptionFile:
    """Lines `name.jpg#0<TAB>caption`."""
    found = CaptionFile()
    for number, line in enumerate(decode_utf8(raw, str(path)).splitlines(), start=1):
        key, tab, text = line.partition("\t")
        name, hash_sign, _ = key.rpartition("#")
        if tab and hash_sign and name:
            found.add(name, [text])
        elif line.strip():
            raise LangevinError(
                f"expected 'image.jpg#0<TAB>caption' in line {number} of {path}, got "
                f"{line[:60]!r}; mend that line, or begin with a line of the columns image, caption"
            )
    return found


def parse_table(path: Path, raw: bytes, kind: str) -> CaptionFile:
    """A row for each caption; the rows of an image have one split."""
    text = Text(raw)
    encoding = find_encoding(text, str(path))
    if kind == "json":
        rows = json_rows(text, encoding, str(path))
    else:
        rows = cell_rows(text, encoding, str(path), kind)
    found, split_of = CaptionFile(), dict[str, str | None]()
    for number, row in enumerate(whole_rows(rows), start=1):
        named = {str(name).strip().lower(): value for name, value in row.items()}
        image, caption = (column(named, name, row, path) for name in (IMAGE, CAPTION))
        if not image:
            raise LangevinError(
                f"expected the name of an image in row {number} of {path}, got none; mend that row"
            )
        split = split_named(str(named.get(SPLIT) or ""), f"row {number} of {path}")
        if split_of.setdefault(image, split) != split:
            raise LangevinError(
                f"expected one split for {image!r} in {path}, got {split_of[image]} and {split}; "
                f"mend row {number}"
            )
        found.add(image, [caption], split)
    unsplit = [image for image, split in split_of.items() if split is None]
    if found.splits and unsplit:
        raise LangevinError(
            f"expected a split for every image or for none in {path}, {len(unsplit)} of "
            f"{len(split_of)} have none, first {unsplit[0]!r}; fill in the column split"
        )
    return found


def whole_rows(rows: Iterator[Row]) -> Iterator[Row]:
    """The same, read under the limit of our own for cells, which is one for the process."""
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield from rows
    finally:
        csv.field_size_limit(before)


def column(named: Row, name: str, row: Row, path: Path) -> str:
    if name not in named:
        there = ", ".join(repr(other) for other in row if other is not None) or "none"
        raise LangevinError(
            f"expected the columns image and caption in {path}, the columns are {there}; rename "
            f"the right ones in its first line"
        )
    value = named[name]
    if isinstance(value, dict | list):
        raise LangevinError(
            f"expected a text in column {name!r} of {path}, got {str(value)[:60]}; write one "
            f"caption a row"
        )
    return "" if value is None else str(value).strip()


def split_named(said: str, where: str) -> str | None:
    """The split under our name for it; None where nothing was said."""
    if not said.strip():
        return None
    split = SPLIT_NAMES.get(said.strip().lower())
    if split is None:
        raise LangevinError(f"expected a split of {KNOWN_SPLITS} in {where}, got {said[:40]!r}; "
                            f"mend it")
    return split


def parse_json_captions(path: Path, raw: bytes) -> CaptionFile:
    """COCO's JSON, which has annotations, or Karpathy's, whose images have their sentences."""
    try:
        content = json.loads(decode_utf8(raw, str(path)))
        if b"\\u" in raw:  # may be half of a pair, which no file can hold
            refuse_half_signs(json.dumps(content, ensure_ascii=False), f"captions in {path}")
        return of_coco(content) if "annotations" in content else of_karpathy(content)
    except LangevinError:
        raise
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise LangevinError(
            f"expected captions in {path} as JSON {SHAPES}, it cannot be read: {error!r:.200}; use "
            f"one of these, or a table with the columns image and caption"
        ) from None


def of_coco(content: dict[str, Any]) -> CaptionFile:
    """Images by number, captions with the number of theirs; it names no splits."""
    names = {image["id"]: file_name(image["file_name"]) for image in content["images"]}
    found = CaptionFile({name: [] for name in names.values()})
    if len(found.texts) < len(names):
        raise ValueError("two images have one file_name")
    for note in content["annotations"]:
        found.add(names[note["image_id"]], [as_text(note["caption"])])
    return found


def of_karpathy(content: dict[str, Any]) -> CaptionFile:
    """Images with filename, sentences and, if there, split; images of other splits are in none."""
    found = CaptionFile()
    for image in content["images"]:
        name = file_name(image["filename"])
        captions = [text_of(sentence) for sentence in image["sentences"]]
        split = SPLIT_NAMES.get(image["split"]) if "split" in image else None
        if split is not None:
            found.splits.setdefault(split, []).append(name)
        found.texts[name] = captions
    return found


def text_of(sentence: dict[str, Any]) -> str:
    """As it was written, or the words it was cut into."""
    if "raw" in sentence:
        return as_text(sentence["raw"])
    return " ".join(as_text(token) for token in sentence["tokens"])


def file_name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"expected the name of an image, got {value!r:.60}")
    return value


def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a caption, got {value!r:.60}")
    return value
