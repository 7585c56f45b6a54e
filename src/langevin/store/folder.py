"""A run on disk: recipe, vocabulary, origin, samples, and the checkpoint of its last state."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import logging
import os
import re
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from torch import Tensor

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import TEMPORARY, inside, listed_name, make_folder, read_bytes, write_atomic
from ..recipe import Recipe
from ..recipe.load import parse_recipe
from .checkpoint import REMEDY as RESTART
from .checkpoint import load_checkpoint, load_progress, save_checkpoint
from .facts import check_facts
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
from .records import BRING_BACK, read_record, seal, write_json, write_record, write_sealed
from .same_chains import refuse_different_chains
from .samples import SAMPLE, SampleStore
from .validation import VALIDATION

RECIPE, ORIGIN, VOCABULARY, CHECKPOINT, SAMPLES, CHAINS, PLATEAU, FEATURES = (
    "recipe.toml", "origin.json", "vocabulary.json", "checkpoint.safetensors", "samples",
    "chains.json", "plateau.safetensors", "features.safetensors",
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
OF_BEGINNING = (*BEGINNING, RECIPE)
"""What is written before the recipe makes a folder a run; and the recipe."""
BY_WRITERS = (*OF_BEGINNING, CHECKPOINT, PLATEAU, FEATURES, MANIFEST, GENERATED, MEMBERS_RECORD,
              COUNTS, POOL, *PARTS.values())
BY_READERS = (COLLECTION, DECISIONS, REPORT, EVALUATION)
"""Written by those who have the lock, and by commands that need none."""
CHAIN = re.compile(r"chain-\d{1,6}")
"""The folders of chains."""
HOUR = 3600.0
"""Seconds after which what a reader left unfinished is of a process that is no more."""
log = logging.getLogger("langevin")


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
        several = [self.path / CHAINS, self.path / "chain-0" / RECIPE]
        self.chains = self._open_chains() if any(map(os.path.lexists, several)) else ()
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
            sums = hashlib.sha256(text).hexdigest(), seal(vocabulary.to_json())
            write_record(path / ORIGIN, describe_origin(recipe, facts, teacher, *sums))
            names = tuple(f"chain-{number}" for number in range(len(chains)))
            for name, chain in zip(names, chains, strict=True):
                cls.create(path / name, chain, vocabulary, facts)
            if chains:
                write_record(path / CHAINS, Chains(chains=names))
            write_atomic(path / RECIPE, text)
        return cls(path)

    @cached_property
    def _recipe_as_read(self) -> bytes:
        path = inside(self.path, RECIPE)
        return read_bytes(path, what="a recipe", instead=BRING_BACK)

    @cached_property
    def recipe(self) -> Recipe:
        recipe = parse_recipe(self._recipe_as_read, self.path / RECIPE)
        with contextlib.suppress(LangevinError):  # an origin that is damaged is refused where read
            if self.recipe_is_edited:
                log.warning("%s was edited since the run began", self.path / RECIPE)
        return recipe

    @property
    def recipe_is_edited(self) -> bool:
        """Whether the recipe is another than when the run began; unknown of old runs, so False."""
        known = self.origin.recipe_sha256
        return known is not None and hashlib.sha256(self._recipe_as_read).hexdigest() != known

    @cached_property
    def vocabulary(self) -> Vocabulary:
        vocabulary, known = read_vocabulary(inside(self.path, VOCABULARY)), self.origin
        if known.vocabulary_sha256 not in (None, seal(vocabulary.to_json())):
            raise LangevinError(f"expected the vocabulary that the run in {self.path} began with, "
                                f"{VOCABULARY} holds another; {BRING_BACK}")
        return vocabulary

    @cached_property
    def origin(self) -> Origin:
        path = inside(self.path, ORIGIN)
        origin = read_record(path, Origin)
        if origin.recipe_sha256 is None and os.path.lexists(self.path / MARKER):
            raise LangevinError(f"{path} is of another run, an older one; {BRING_BACK}")
        return origin

    @property
    def facts(self) -> Facts:
        """What the run remembers of its data."""
        return check_facts(self.origin.data, self.recipe.task, self.path / ORIGIN)

    def store(self, *, skip_damaged: bool = False) -> SampleStore:
        if self.chains:
            stores = [chain.store(skip_damaged=skip_damaged) for chain in self.chains]
            return SampleStore.of_chains(self.path, stores)
        progress = self.progress()  # before the list: a run that goes on appends to that first
        known = (progress.samples or ()) if progress else ()
        return SampleStore(inside(self.path, SAMPLES), skip_damaged=skip_damaged, known=known)

    def save_checkpoint(self, tensors: dict[str, Tensor], progress: RunProgress) -> None:
        save_checkpoint(self.path / CHECKPOINT, tensors, progress)

    def load_checkpoint(self) -> tuple[dict[str, Tensor], RunProgress] | None:
        """Tensors and progress of the last checkpoint, or None before the first."""
        loaded = load_checkpoint(inside(self.path, CHECKPOINT))
        self._expect_own(loaded[1] if loaded else None)
        return loaded

    def progress(self) -> RunProgress | None:
        """How far the run is by now, without its weights; of all chains together."""
        if self.chains:
            return joint_progress([chain.progress() for chain in self.chains])
        progress = load_progress(inside(self.path, CHECKPOINT))
        self._expect_own(progress)
        return progress

    def _expect_own(self, progress: RunProgress | None) -> None:
        """A run that began with this format has no checkpoint of an older one."""
        older = progress is not None and progress.samples is None
        if older and self.origin.vocabulary_sha256 is not None:
            raise LangevinError(f"{self.path / CHECKPOINT} is of another run, an older one; bring "
                                f"it back from a copy, or {RESTART}")

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
            if name in BY_WRITERS or SAMPLE.fullmatch(name) or VALIDATION.fullmatch(name) or old:
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
    found = list[Path]()
    for entry in sorted(path.iterdir()):
        unfinished = TEMPORARY.fullmatch(entry.name)
        if entry.is_symlink():
            return None
        if entry.is_dir():
            within = unbegun_chain(entry) if CHAIN.fullmatch(entry.name) else None
            if within is None:
                return None
            found += [*within, entry]
        elif entry.name in BEGINNING or (unfinished and unfinished["target"] in OF_BEGINNING):
            found.append(entry)
        elif entry.name != LOCK:
            return None
    only_temporary = all(TEMPORARY.fullmatch(entry.name) for entry in found)
    return found if only_temporary or is_marked(path) else None


def unbegun_chain(path: Path) -> list[Path] | None:
    """The same of a chain that was not trained: its recipe may be there."""
    names = (*OF_BEGINNING, LOCK)
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


def write_marker(path: Path, kind: str) -> None:
    """Say that a folder is ours, and of which kind: run, chains or export."""
    write_json(path / MARKER, Marker.model_validate({"format": 1, "kind": kind}).to_dict())


def put_aside(path: Path) -> list[Path]:
    """Where what was in this folder was kept while something was to replace it, if cut off."""
    if not path.name:
        return []
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.replaced-*"))
