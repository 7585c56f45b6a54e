"""Replacing a run or an export: only what langevin wrote goes, not before the new one stands."""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import A_FOLDER, TEMPORARY, no_file, read_bytes, sync_folder
from ..recipe import Recipe, load_recipe
from .folder import (
    CHAIN,
    CHAINS,
    CHECKPOINT,
    COLLECTION,
    DECISIONS,
    EVALUATION,
    FEATURES,
    GENERATED,
    LOG,
    MARKER,
    ORIGIN,
    PLATEAU,
    RECIPE,
    REPORT,
    SAMPLES,
    VOCABULARY,
    refuse_occupied,
)
from .linear_members import PARTS, POOL
from .listing import MANIFEST, OLD_MANIFEST
from .lock import LOCK, lock_folder
from .members import COUNTS, MEMBERS, MEMBERS_RECORD

CONFIG, CARD = "config.json", "README.md"
"""Of an exported model."""
OF_RUN = (RECIPE, ORIGIN, VOCABULARY, CHECKPOINT, PLATEAU, COLLECTION, DECISIONS, GENERATED, LOG,
          FEATURES, REPORT, EVALUATION, POOL, *PARTS.values())
FILES = {"run": OF_RUN, "chains": (*OF_RUN, CHAINS), "export": (CONFIG, VOCABULARY, CARD)}
"""What we write into a folder of each kind, beside the marker and the lock."""
SAMPLE = {
    "run": re.compile(r"\d{9,18}(\.valid)?\.safetensors"),
    "export": re.compile(r"sample-\d{4,9}\.safetensors"),
}
COMPLETE = {"run": (ORIGIN, VOCABULARY), "chains": (ORIGIN, VOCABULARY), "export": (VOCABULARY,)}
"""What must be in a folder without marker, as older versions left them, beside recipe or config."""
UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.making")
"""What `new_folder` calls a folder that is not whole yet."""
log = logging.getLogger("langevin")


@contextlib.contextmanager
def replacing(out: Path, recipe: Recipe | None = None) -> Iterator[None]:
    """Within this, `out` is free for the new run; what was there goes at the end.

    It comes back if anything fails.

    Of a folder that is not ours, or holds anything that is not, nothing is touched.
    """
    if not replaceable(out, recipe):
        yield
        return
    out = out.resolve()
    with contextlib.ExitStack() as locks:
        for folder in (out, *sorted(out.glob("chain-*"))):
            locks.enter_context(lock_folder(folder))
        owned(out)  # again: before the lock was ours, a writer could add to it
        aside = out.with_name(f".{out.name}.replaced-{secrets.token_hex(4)}")
        move(out, aside)
        try:
            yield
        except BaseException:
            bring_back(aside, out)
            raise
        remove(aside)


def replaceable(out: Path, recipe: Recipe | None = None) -> bool:
    """Whether there is something to replace; refused unless it is ours and not read anew."""
    if not out.is_dir() or kind_of(out) is None:
        return False
    owned(out)
    for key, value in (recipe.data.model_dump() if recipe else {}).items():
        is_there = isinstance(value, str) and no_file(Path(value)) in ("", A_FOLDER)
        if is_there and Path(value).resolve().is_relative_to(out.resolve()):
            raise LangevinError(f"the new run reads {value} ({key}), which lies in the folder to "
                                f"replace; move it away or choose another --out")
    return True


def refuse_target(out: Path, recipe: Recipe, *, overwrite: bool) -> None:
    """Refuse early what `replacing`, or a new run, would refuse in the end."""
    if not (overwrite and replaceable(out, recipe)):
        refuse_occupied(out)


def kind_of(folder: Path) -> str | None:
    """Of which kind a folder of ours is, by its marker or its complete shape; None if it is not."""
    if (folder / MARKER).is_file() and not (folder / MARKER).is_symlink():
        marker = read(folder / MARKER)
        if set(marker) == {"format", "kind"} and marker["format"] == 1 and marker["kind"] in FILES:
            return str(marker["kind"])
        raise LangevinError(f"expected {folder / MARKER} to say of which kind the folder is, it "
                            f"says something else; choose another folder, or remove this one "
                            f"yourself")
    if read(folder / CONFIG).get("library_name") == "langevin":
        kind = "export"
    elif (folder / RECIPE).is_file():
        kind = "chains" if (folder / CHAINS).is_file() else "run"
        try:
            load_recipe(folder / RECIPE)
        except LangevinError:
            raise not_ours(folder, f"its {RECIPE} is none of ours") from None
    else:
        return None
    for name in COMPLETE[kind]:
        if not read(folder / name):
            raise not_ours(folder, f"it has no sound {name}")
    return kind


def not_ours(folder: Path, why: str) -> LangevinError:
    return LangevinError(f"{folder} is not a whole folder of langevin: {why}. --overwrite "
                         f"replaces only those; choose another folder, or remove this one yourself")


def read(path: Path) -> dict[str, Any]:
    """A JSON table; empty where there is none."""
    try:
        content = json.loads(read_bytes(path))
    except (LangevinError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def owned(folder: Path, kind: str | None = None) -> list[Path]:
    """All that is in a folder of ours, contents before folders; anything foreign is refused."""
    kind = kind or kind_of(folder)
    if kind is None:
        raise not_ours(folder, "nothing in it says so")
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and path.name == SAMPLES:
            found += samples_in(path, "export" if kind == "export" else "run")
        elif is_folder and path.name == MEMBERS:
            found += members_in(path)
        elif is_folder and kind == "chains" and CHAIN.fullmatch(path.name):
            found += owned(path, "run")
        elif is_folder or not is_own(path, (*FILES[kind], MARKER, LOCK)):
            raise foreign(path)
        found.append(path)
    return found


def samples_in(folder: Path, kind: str) -> list[Path]:
    found = sorted(folder.iterdir())
    for path in found:
        if not is_own(path, (MANIFEST, OLD_MANIFEST), SAMPLE[kind]):
            raise foreign(path)
    return found


def members_in(folder: Path) -> list[Path]:
    found = sorted(folder.iterdir())
    for path in found:
        if not is_own(path, (MEMBERS_RECORD, COUNTS)):
            raise foreign(path)
    return found


def is_own(path: Path, names: tuple[str, ...], pattern: re.Pattern[str] | None = None) -> bool:
    """A file by one of these names, or a temporary one that was left of it; never a link."""
    unfinished = TEMPORARY.fullmatch(path.name)
    name = unfinished["target"] if unfinished else path.name
    ours = name in names or (pattern is not None and pattern.fullmatch(name) is not None)
    return ours and path.is_file() and not path.is_symlink()


def foreign_in(folder: Path, names: tuple[str, ...]) -> list[str]:
    """Names of what somebody else put beside our files."""
    return [path.name for path in sorted(folder.iterdir())
            if path.name not in (SAMPLES, MEMBERS) and not CHAIN.fullmatch(path.name)
            and not is_own(path, names)]


def foreign(path: Path) -> LangevinError:
    return LangevinError(f"{path} was not written by langevin; --overwrite removes only what it "
                         f"wrote itself. Move the file away or choose another folder; nothing was "
                         f"touched")


def move(old: Path, new: Path) -> None:
    try:
        old.rename(new)
        sync_folder(old.parent)
    except OSError as error:
        raise LangevinError(f"cannot put {old} aside as {new}: {error.strerror}; choose another "
                            f"folder") from None


def bring_back(aside: Path, out: Path) -> None:
    """Undo: what stands of the new run goes, the old one comes back."""
    try:
        if out.exists():
            remove(out)
        aside.rename(out)
        sync_folder(out.parent)
    except (OSError, LangevinError) as error:
        log.warning("what was in %s is in %s now; it could not be brought back: %s",
                    out, aside, error)


def remove(folder: Path) -> None:
    """Remove what is ours, file by file, and the folders that are empty then."""
    try:
        found = owned(folder) if any(folder.iterdir()) else []
        for path in sorted(found, key=lambda path: path.name == MARKER and path.parent == folder):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()
        sync_folder(folder.parent)
    except (OSError, LangevinError) as error:
        log.warning("%s could not be removed: %s", folder, error)


def new_folder(beside: Path) -> Path:
    """A new empty folder of a random name, in which to make what is then renamed to this path."""
    making = beside.with_name(f".{beside.name}.{secrets.token_hex(4)}.making")
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        making.mkdir()
    except OSError as error:
        raise LangevinError(f"cannot write {making}: {error.strerror}; choose another "
                            f"folder") from None
    return making


def sweep_unfinished(beside: Path) -> None:
    """Remove the folders that exports to this path began when their process was killed."""
    for making in beside.parent.glob(f".{glob.escape(beside.name)}.*.making"):
        with contextlib.suppress(LangevinError, OSError):  # somebody is at work there, or not ours
            if making.is_symlink() or not UNFINISHED.fullmatch(making.name):
                continue
            with lock_folder(making):
                for path in owned(making, "export"):
                    path.rmdir() if path.is_dir() else path.unlink()
            making.rmdir()
