"""Whether a folder is what was written: every file against its model and its checksum."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import inside
from .checkpoint import load_checkpoint, load_generated
from .export import read_config, read_export
from .folder import (
    CHAINS,
    CHECKPOINT,
    COLLECTION,
    DECISIONS,
    FEATURES,
    GENERATED,
    MARKER,
    ORIGIN,
    PLATEAU,
    RECIPE,
    SAMPLES,
    VOCABULARY,
    RunFolder,
)
from .linear_members import POOL, read_linear_members
from .lock import LOCK
from .manifest import Marker
from .members import COUNTS, MEMBERS, read_members
from .own_features import read_own_features
from .records import BRING_BACK, read_record, read_sealed
from .replacement import CARD, CONFIG, FILES, foreign_in, kind_of
from .samples import SampleStore, damage


@dataclass(frozen=True)
class FileFinding:
    """One file, or all samples that are alike."""

    file: str
    sound: bool
    said: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_folder(path: Path) -> list[FileFinding]:
    """What there is in a run, a folder of chains or an exported folder, file by file."""
    if (path / CONFIG).is_file():
        return [*check_marker(path), *check_export(path)]
    folder = RunFolder(path)
    findings = check_run(folder)
    for chain in folder.chains:
        findings += [FileFinding(f"{chain.path.name}/{f.file}", f.sound, f.said)
                     for f in check_run(chain)]
    return findings


def check_run(folder: RunFolder) -> list[FileFinding]:
    path = folder.path
    findings = [
        *check_marker(path), try_read(RECIPE, lambda: recipe_note(folder)),
        try_read(ORIGIN, lambda: note(folder.origin)),
        try_read(VOCABULARY, lambda: note(folder.vocabulary)),
    ]
    readers: dict[str, Callable[[], object]] = {
        CHAINS: lambda: folder.chains, COLLECTION: folder.choice,
        DECISIONS: lambda: read_sealed(inside(path, DECISIONS)),
        GENERATED: lambda: load_generated(inside(path, GENERATED)),
        CHECKPOINT: lambda: load_checkpoint(inside(path, CHECKPOINT)),
        POOL: lambda: read_linear_members(path),
        PLATEAU: lambda: load_checkpoint(inside(path, PLATEAU)),
        FEATURES: lambda: read_own_features(path, folder.facts),
    }
    findings += [try_read(name, lambda read=read: note(read()))  # type: ignore[misc]
                 for name, read in readers.items() if os.path.lexists(path / name)]
    findings += check_counts(path, lambda: folder.vocabulary)
    if not folder.chains:
        findings += check_samples(path)
        findings.append(try_read(f"{CHECKPOINT}, {SAMPLES}", lambda: agree(folder)))
    kind = "chains" if folder.chains else "run"
    return [*findings, *(FileFinding(name, True, "not langevin's, not looked at")
                         for name in foreign_in(path, (*FILES[kind], MARKER, LOCK)))]


def check_export(path: Path) -> list[FileFinding]:
    findings = [
        try_read(CONFIG, lambda: note(read_config(path))),
        try_read(f"{VOCABULARY}, {SAMPLES}", lambda: note(read_export(path))),
        *check_counts(path, lambda: read_export(path)[2]),
        *check_samples(path), try_read(SAMPLES, lambda: expect_count(path)),
    ]
    if not (path / CARD).is_file():
        findings.append(FileFinding(CARD, False, "not there"))
    return [*findings, *(FileFinding(name, True, "not langevin's, not looked at")
                         for name in foreign_in(path, (*FILES["export"], MARKER, LOCK)))]


def check_marker(path: Path) -> list[FileFinding]:
    return [try_read(MARKER, lambda: marker_note(path))]


def marker_note(path: Path) -> str:
    """Folders of old have none; newer ones, which are sealed, always do."""
    if os.path.lexists(path / MARKER):
        return note(read_record(inside(path, MARKER), Marker))
    about = CONFIG if (path / CONFIG).is_file() else ORIGIN
    number = 1
    with contextlib.suppress(LangevinError):  # what is damaged is told of by itself
        number = read_sealed(inside(path, about)).get("format", 1)
    if number != 1:
        raise LangevinError(f"expected {path / MARKER}, found none; {BRING_BACK}")
    return note(kind_of(path), "none, as in folders of old")


def check_samples(path: Path) -> list[FileFinding]:
    """One line for all that are sound, one for each that is not."""
    try:
        store = SampleStore(inside(path, SAMPLES))
    except LangevinError as error:
        return [FileFinding(SAMPLES, False, str(error))]
    found = {sample.path.name: damage(sample) for sample in store.samples}
    sound = Counter(not said for said in found.values())[True]
    damaged = [FileFinding(f"{SAMPLES}/{name}", False, said) for name, said in found.items() if said]
    return [FileFinding(SAMPLES, True, f"{sound} of {len(found)} sound"), *damaged]


def check_counts(path: Path, vocabulary: Callable[[], Vocabulary]) -> list[FileFinding]:
    """The counts beside the samples, if there is a folder of them."""
    if not (path / MEMBERS).exists():
        return []

    def read() -> str:
        found = read_members(path, vocabulary())
        if found is None:
            return "none yet: cut off, 'langevin resume' makes them"
        return f"{COUNTS} contains the text"

    return [try_read(MEMBERS, read)]


def agree(folder: RunFolder) -> str:
    """That the samples a checkpoint knows are listed, if it knows any."""
    if lost := folder.store().lost:
        raise LangevinError(f"{lost[0]}; 'langevin resume' lists it again")
    return ""


def expect_count(path: Path) -> str:
    expected, found = read_config(path).samples, len(SampleStore(inside(path, SAMPLES)))
    if expected != found:
        raise LangevinError(f"expected {expected} samples in {path}, found {found}; export anew")
    return ""


def recipe_note(folder: RunFolder) -> str:
    note(folder.recipe)
    with contextlib.suppress(LangevinError):  # an origin that is damaged is told of by itself
        return "edited since the run began" if folder.recipe_is_edited else ""
    return ""


def note(_: object, said: str = "") -> str:
    """What to say of a file that could be read."""
    return said


def try_read(name: str, read: Callable[[], str]) -> FileFinding:
    try:
        return FileFinding(name, True, read())
    except LangevinError as error:
        return FileFinding(name, False, str(error))
