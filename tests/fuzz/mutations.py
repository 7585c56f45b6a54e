"""Ways to damage a file, each a function of a random generator, and ways to forge one.

What is damaged came about by accident: bytes are lost or changed, a value stands where another was.
What is forged carries the checksum of its false content, as only somebody who means it can do.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open

from langevin.store.checkpoint import PROGRESS, metadata_of
from langevin.store.records import SUM, seal

Rng = random.Random
OUTSIDE = "../precious.txt"
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 10**6, 10**30, -(10**30), 1e308, float("nan"), float("inf"), "",
    "x", OUTSIDE, "../../precious.txt", "/etc/passwd", "a\0b", "\x1b[31m", "\ud800", "é" * 300, [],
    {}, [[]], [None], {"a": 1}, "9" * 5000, 0.5,
)
NESTED, DEEP = "nested here", 3000
"""Stands for lists in lists, deeper than any reader goes; `dump` writes them."""


def truncate(path: Path, rng: Rng) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))] if content else b"")


def cut_lines(path: Path, rng: Rng) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: rng.randrange(len(lines))]) if lines else b"")


def empty(path: Path, rng: Rng) -> None:
    path.write_bytes(b"")


def flip_bit(path: Path, rng: Rng) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def flip_bits(path: Path, rng: Rng) -> None:
    for _ in range(rng.randint(2, 40)):
        flip_bit(path, rng)


def zero_block(path: Path, rng: Rng) -> None:
    """As a sector that was never written."""
    content = bytearray(path.read_bytes())
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((1, 16, 512)))
    content[start:end] = bytes(end - start)
    path.write_bytes(content)


def remove_bytes(path: Path, rng: Rng) -> None:
    content = path.read_bytes()
    start = rng.randrange(len(content) + 1)
    path.write_bytes(content[:start] + content[start + rng.randint(1, 64):])


def insert_bytes(path: Path, rng: Rng) -> None:
    content = path.read_bytes()
    at = rng.randrange(len(content) + 1)
    path.write_bytes(content[:at] + rng.randbytes(rng.randint(1, 16)) + content[at:])


def append_bytes(path: Path, rng: Rng) -> None:
    with path.open("ab") as file:
        file.write(rng.choice((b"\n", b"{}\n", b"\0" * 100, b"x", rng.randbytes(20))))


def repeat_line(path: Path, rng: Rng) -> None:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    at = rng.randrange(len(lines))
    path.write_bytes(b"".join([*lines[: at + 1], lines[at], *lines[at + 1:]]))


def remove_line(path: Path, rng: Rng) -> None:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    lines.pop(rng.randrange(len(lines)))
    path.write_bytes(b"".join(lines))


def swap_lines(path: Path, rng: Rng) -> None:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    path.write_bytes(b"".join(lines))


def noise(path: Path, rng: Rng) -> None:
    path.write_bytes(rng.randbytes(rng.choice((1, 8, 100, 5000))))


def other_content(path: Path, rng: Rng) -> None:
    """The bytes of another file, of the same folder or of one beside it."""
    files = [p for p in sorted(path.parents[1].rglob("*")) if p.is_file() and p != path]
    path.write_bytes(rng.choice(files).read_bytes())


def namesake(path: Path, rng: Rng) -> None:
    """What stands in the file of the same name of another sound folder."""
    place = next(above for above in path.parents if (above / "precious.txt").is_file())
    files = sorted((place.parent / "sound").rglob(path.name))
    path.write_bytes(rng.choice(files).read_bytes())


def change_number(path: Path, rng: Rng) -> None:
    """Another number in a text, where there is one."""
    content = path.read_bytes()
    found = list(re.finditer(rb"(?<![\w.])-?\d+(\.\d+)?", content[: 1 << 16]))
    if found:
        at = rng.choice(found)
        new = rng.choice((b"0", b"-1", b"7", b"0.25", b"1e999", b"nan", b"1" * 400, b"true"))
        path.write_bytes(content[: at.start()] + new + content[at.end():])


def change_json(path: Path, rng: Rng) -> None:
    """A value, a key or a type, and no new checksum."""
    rewrite(path, rng, forged=False)


def forge_json(path: Path, rng: Rng) -> None:
    """The same, sealed anew: every check but that of sums must hold."""
    rewrite(path, rng, forged=True)


def rewrite(path: Path, rng: Rng, *, forged: bool) -> None:
    """JSON, a line of JSON, or the record inside a checkpoint."""
    if path.suffix == ".safetensors":
        rewrite_tensors(path, rng, forged=forged)
    elif path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        at = rng.randrange(len(lines))
        content = json.loads(lines[at])
        change(content, rng)
        if forged:
            content.pop("crc", None)
        lines[at] = dump(content)
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".json":
        content = json.loads(path.read_bytes())
        change(content, rng)
        if forged and SUM in content:
            content[SUM] = seal(content)
        path.write_text(dump(content))
    else:
        change_number(path, rng)


def rewrite_tensors(path: Path, rng: Rng, *, forged: bool) -> None:
    """The header of a safetensors file, or with new checksums the record of a checkpoint."""
    if not forged:
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8: 8 + size])
        change(header, rng)
        text = dump(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + size:])
        return
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError:
        return
    if PROGRESS in metadata and rng.random() < 0.7:
        record = json.loads(metadata[PROGRESS])
        change(record, rng)
        metadata = metadata_of(tensors, dump(record))
    elif tensors:
        name = rng.choice(sorted(tensors))
        tensors |= rng.choice(({name: tensors[name].double()}, {name: tensors[name].flatten()[:1]},
                               {f"{name}.x": tensors[name].clone()}, {name: tensors[name] * float("nan")}))
        metadata = metadata_of(tensors, metadata.get(PROGRESS, "{}")) if metadata else {}
    path.write_bytes(safetensors.torch.save(tensors, metadata=metadata or None))


def change(content: Any, rng: Rng) -> None:
    """One change somewhere inside."""
    place = content
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
            place = place[key]
            continue
        how = rng.randrange(6)
        if how == 0:
            del place[key]
        elif how == 1 and isinstance(place, dict):
            place[f"{key}x"] = place.pop(key)
        elif how == 2 and isinstance(place, dict):
            place[rng.choice(("foreign", "", OUTSIDE, "format"))] = rng.choice(VALUES)
        elif how == 3:
            place[key] = NESTED
        else:
            place[key] = rng.choice(VALUES)
        return


def dump(content: Any) -> str:
    """JSON, with what is nested too deep for a writer."""
    return json.dumps(content).replace(f'"{NESTED}"', "[" * DEEP + "]" * DEEP)


def become_link_outside(path: Path, rng: Rng) -> None:
    target = path.parents[0] / f"../{path.name}.elsewhere"
    path.rename(target)
    path.symlink_to(target)


def become_dangling_link(path: Path, rng: Rng) -> None:
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def become_own_link(path: Path, rng: Rng) -> None:
    path.unlink()
    path.symlink_to(path.name)


def become_folder(path: Path, rng: Rng) -> None:
    path.unlink()
    path.mkdir()


def become_pipe(path: Path, rng: Rng) -> None:
    path.unlink()
    os.mkfifo(path)


def vanish(path: Path, rng: Rng) -> None:
    path.unlink()


def lead_samples_away(path: Path, rng: Rng) -> None:
    """The folder of the file, if it is not the run itself, is a link to one outside."""
    if path.parent.name == "samples":
        target = path.parents[2] / "elsewhere"
        shutil.move(path.parent, target)
        path.parent.symlink_to(target)


def join_strangers(path: Path, rng: Rng) -> None:
    """Files of others beside ours, under names that look like ours."""
    for name in (".x.tmp", f".{path.name}.0011aabb.tmp", "000000000.safetensors", "notes.txt"):
        (path.parent / name).write_bytes(b"not langevin's")


DAMAGE: tuple[Callable[[Path, Rng], None], ...] = (
    truncate, cut_lines, empty, flip_bit, flip_bits, zero_block, remove_bytes, insert_bytes,
    append_bytes, repeat_line, remove_line, swap_lines, noise, other_content, namesake, change_number,
    change_json, become_link_outside, become_dangling_link, become_own_link, become_folder,
    become_pipe, vanish, lead_samples_away, join_strangers,
)
FORGERY: tuple[Callable[[Path, Rng], None], ...] = (forge_json,)
