"""A run on disk: recipe, vocabulary, origin, samples, and the checkpoint of its last state."""

from __future__ import annotations

import glob
import hashlib
import re
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import TEMPORARY, inside, listed_name, make_folder, read_utf8, write_atomic
from ..recipe import Recipe, load_recipe
from .checkpoint import load_checkpoint, load_progress, save_checkpoint
from .linear_members import PARTS, POOL
from .listing import MANIFEST
from .lock import LOCK, lock_folder
from .manifest import (
    Chains,
    Choice,
    Facts,
    Marker,
    Origin,
    RunProgress,
    Teacher,
    Tokens,
    describe_origin,
    joint_progress,
)
from .members import COUNTS, MEMBERS, MEMBERS_RECORD
from .records import read_record, write_json, write_record, write_sealed
from .samples import SAMPLE, SampleStore

RECIPE, ORIGIN, VOCABULARY, CHECKPOINT, SAMPLES, CHAINS = (
    "recipe.toml", "origin.json", "vocabulary.json", "checkpoint.safetensors", "samples",
    "chains.json",
)
MARKER = ".langevin-run.json"
"""Written first into every folder that we make; says of which kind it is."""
COLLECTION, DECISIONS, GENERATED, LOG, REPORT, EVALUATION = (
    "collection.json", "decision.json", "generated.safetensors", "log.txt", "report.html",
    "evaluation.json",
)
"""What else may be in a run folder: the collection that validation prefers; the rules of `decide`;
what a student's teacher wrote; what the process of a chain said; the page of `report`; the numbers
of a member of a cross-validation."""
BEGINNING = (MARKER, VOCABULARY, ORIGIN, CHAINS)
"""What is written before the recipe makes a folder a run."""
BY_WRITERS = (*BEGINNING, RECIPE, CHECKPOINT, MANIFEST, GENERATED, MEMBERS_RECORD, COUNTS, POOL,
              *PARTS.values())
BY_READERS = (COLLECTION, DECISIONS, REPORT, EVALUATION)
"""Written by those who have the lock, and by commands that need none."""
CHAIN = re.compile(r"chain-\d{1,6}")
"""The folders of chains."""


HOUR = 3600.0
"""Seconds after which what a reader left unfinished is of a process that is no more."""


def refuse_occupied(path: Path) -> None:
    """A new run needs a folder that is not there, or empty but for a beginning that was cut off."""
    if path.exists() and (not path.is_dir() or unbegun(path) is None):
        if not (path / RECIPE).exists():
            raise LangevinError(f"{path} is not an empty folder; choose another --out")
        raise LangevinError(f"{path} already holds a run; choose another --out, go on with "
                            f"'langevin resume {path}', or allow --overwrite")


class RunFolder:
    """Paths and formats of a run folder; decides nothing. What does not change is read once.

    A folder of several chains has `chains.json`, which names its subfolders: ordinary run folders
    whose recipes differ in their seeds alone. It reads like one run: its store gives the samples
    of all chains.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / RECIPE).is_file():
            what = "no run in it" if self.path.is_dir() else "nothing there"
            aside = "".join(f". The run that --overwrite was to replace is in {old}"
                            for old in put_aside(self.path))
            if self.path.is_dir() and unbegun(self.path):
                what = "a run that was cut off before it began, which 'langevin train' starts over"
            raise LangevinError(f"expected a run folder at {self.path}, found {what}; pass the "
                                f"--out of a training run{aside}")
        self.chains = self._open_chains() if (self.path / CHAINS).is_file() else ()
        """The chains of a folder of several; empty for an ordinary run."""

    @classmethod
    def create(
        cls, path: str | Path, recipe: Recipe, vocabulary: Vocabulary, facts: Facts,
        chains: Sequence[Recipe] = (), teacher: Teacher | None = None,
    ) -> RunFolder:
        """Start a run, or one for each recipe in `chains`; its recipe is written last."""
        path, text = Path(path), recipe.to_toml().encode()
        refuse_occupied(path)
        try:
            make_folder(path)
        except OSError as error:
            raise LangevinError(f"cannot write {path}: {error.strerror}; choose another "
                                f"folder") from None
        with lock_folder(path):
            refuse_occupied(path)
            for left in unbegun(path) or ():
                left.rmdir() if left.is_dir() else left.unlink()
            write_marker(path, "chains" if chains else "run")
            write_sealed(path / VOCABULARY, vocabulary.to_json())
            recipe_sum = hashlib.sha256(text).hexdigest()
            write_record(path / ORIGIN, describe_origin(recipe, facts, teacher, recipe_sum))
            names = tuple(f"chain-{number}" for number in range(len(chains)))
            for name, own in zip(names, chains, strict=True):
                cls.create(path / name, own, vocabulary, facts)
            if chains:
                write_record(path / CHAINS, Chains(chains=names))
            write_atomic(path / RECIPE, text)
        return cls(path)

    @cached_property
    def recipe(self) -> Recipe:
        return load_recipe(inside(self.path, RECIPE))

    @property
    def recipe_is_edited(self) -> bool:
        """Whether the recipe is another than when the run began; unknown of old runs, so False."""
        text = read_utf8(inside(self.path, RECIPE))
        known = self.origin.recipe_sha256
        return known is not None and hashlib.sha256(text.encode()).hexdigest() != known

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return read_vocabulary(inside(self.path, VOCABULARY))

    @cached_property
    def origin(self) -> Origin:
        return read_record(inside(self.path, ORIGIN), Origin)

    @property
    def facts(self) -> Facts:
        """What the run remembers of its data."""
        return self.origin.data

    def store(self, *, skip_damaged: bool = False) -> SampleStore:
        if self.chains:
            stores = [inside(chain.path, SAMPLES) for chain in self.chains]
            return SampleStore.of_chains(self.path, stores, skip_damaged=skip_damaged)
        return SampleStore(inside(self.path, SAMPLES), skip_damaged=skip_damaged)

    def save_checkpoint(self, tensors: dict[str, Tensor], progress: RunProgress) -> None:
        save_checkpoint(self.path / CHECKPOINT, tensors, progress)

    def load_checkpoint(self) -> tuple[dict[str, Tensor], RunProgress] | None:
        """Tensors and progress of the last checkpoint, or None before the first."""
        return load_checkpoint(inside(self.path, CHECKPOINT))

    def progress(self) -> RunProgress | None:
        """How far the run is by now, without its weights; of all chains together."""
        if self.chains:
            return joint_progress([chain.progress() for chain in self.chains])
        return load_progress(inside(self.path, CHECKPOINT))

    def choice(self) -> Choice | None:
        """The collection that validation prefers, where that is remembered."""
        path = inside(self.path, COLLECTION)
        if not path.exists():
            return None
        remedy = "delete it, and the choice is made anew where it is needed"
        choice = read_record(path, Choice, remedy)
        old = choice.format < 2 and self.recipe.task == "classify"  # whose error was per cent
        return choice.model_copy(update={"score": choice.score / 100}) if old else choice

    def remember(self, choice: Choice) -> None:
        write_record(self.path / COLLECTION, choice)

    def sweep(self) -> None:
        """Remove what writers that were killed left unfinished; only for who has the lock."""
        rooms = (self.path, inside(self.path, SAMPLES), inside(self.path, MEMBERS))
        for path in (path for room in rooms for path in room.glob(".*.tmp")):
            unfinished = TEMPORARY.fullmatch(path.name)
            name = unfinished["target"] if unfinished else ""
            old = name in BY_READERS and time.time() - path.lstat().st_mtime > HOUR
            if name in BY_WRITERS or SAMPLE.fullmatch(name) or old:
                path.unlink(missing_ok=True)

    def _open_chains(self) -> tuple[RunFolder, ...]:
        path = inside(self.path, CHAINS)
        names = [listed_name(name, CHAIN, path) for name in read_record(path, Chains).chains]
        if len(set(names)) < len(names):
            raise LangevinError(f"expected each chain once in {path}, got {', '.join(names)}; "
                                f"bring the file back as it was written")
        chains = tuple(RunFolder(inside(self.path, name)) for name in names)
        refuse_different_chains((self, *chains))
        return chains


def unbegun(path: Path) -> list[Path] | None:
    """What a process that was killed before it wrote the recipe left, contents before folders.

    None if there is anything else: a recipe, samples, a checkpoint, or what is not ours.
    """
    found, whole = list[Path](), set[str]()
    for entry in sorted(path.iterdir()):
        unfinished = TEMPORARY.fullmatch(entry.name)
        if entry.is_symlink():
            return None
        if entry.is_dir():
            within = unbegun_chain(entry) if CHAIN.fullmatch(entry.name) else None
            if within is None:
                return None
            found += [*within, entry]
        elif unfinished and unfinished["target"] in (*BEGINNING, RECIPE):
            found.append(entry)
        elif entry.name in BEGINNING:
            found.append(entry)
            whole.add(entry.name)
        elif entry.name != LOCK:
            return None
    if not whole and all(TEMPORARY.fullmatch(entry.name) for entry in found):
        return found
    return found if is_marked(path) else None


def unbegun_chain(path: Path) -> list[Path] | None:
    """The same of a chain that was not trained: its recipe may be there."""
    names = (*BEGINNING, RECIPE, LOCK)
    found = sorted(path.iterdir())
    for entry in found:
        unfinished = TEMPORARY.fullmatch(entry.name)
        name = unfinished["target"] if unfinished else entry.name
        if entry.is_symlink() or not entry.is_file() or name not in names:
            return None
    return found


def is_marked(path: Path) -> bool:
    """Whether our marker says that the folder is to become a run."""
    try:
        return read_record(path / MARKER, Marker).kind in ("run", "chains")
    except LangevinError:
        return False


def read_vocabulary(path: Path) -> Vocabulary:
    """The tokens of a run or an exported folder."""
    record = read_record(path, Tokens)
    try:
        return Vocabulary(record.level, list(record.tokens), running=record.running)
    except LangevinError as error:
        raise LangevinError(f"{path} holds no vocabulary: {error}") from None


def refuse_different_chains(folders: Sequence[RunFolder]) -> None:
    """Chains are runs of one recipe on the same data: averages over anything else mean nothing."""
    first, facts = folders[0], folders[0].facts
    ours = recipe_but_seed(first.recipe)
    for other in folders[1:]:
        theirs = recipe_but_seed(other.recipe)
        keys = sorted(k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k))
        if keys:
            raise LangevinError(
                f"expected chains of one recipe that differ in their seeds alone, got {keys[0]} = "
                f"{ours.get(keys[0])} in {first.path} and {theirs.get(keys[0])} in {other.path}; "
                f"name runs of one recipe"
            )
        if facts.get("data_sha256") != other.facts.get("data_sha256"):
            raise LangevinError(f"expected chains trained on the same data, {other.path} saw "
                                f"another than {first.path}; name runs of one text")


def recipe_but_seed(recipe: Recipe) -> dict[str, Any]:
    """What a recipe computes, flat and without seed and title."""
    tables = recipe.what_is_computed()
    flat = {f"{name}.{key}": value for name, table in tables.items() if isinstance(table, dict)
            for key, value in table.items()}
    return {"task": recipe.task} | {k: value for k, value in flat.items() if k != "run.seed"}


def write_marker(path: Path, kind: str) -> None:
    """Say that a folder is ours, and of which kind: run, chains or export."""
    write_json(path / MARKER, Marker.model_validate({"format": 1, "kind": kind}).to_dict())


def put_aside(path: Path) -> list[Path]:
    """Where what was in this folder was kept while something was to replace it, if cut off."""
    if not path.name:
        return []
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.replaced-*"))
