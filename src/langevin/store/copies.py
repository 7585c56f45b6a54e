"""A run folder with its training sentences in a file beside it: copied, and pickled whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import sync_folder, write_atomic
from ..recipe import Recipe
from .folder import ORIGIN, RECIPE, RunFolder
from .lock import LOCK
from .records import write_record
from .replacement import replaceable, replacing


class PortableRun:
    """A run folder that can be copied and pickled; a temporary one goes when this does."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    @classmethod
    def empty(cls, folder: str | Path | None) -> PortableRun:
        """For a new run: the folder given, which must not hold anything, or a temporary one."""
        if folder is None:
            return cls(Path())._in_temporary("run")
        run = cls(Path(folder))
        refuse_used(run.path,
                    "choose another one, or None: each fit of a cross-validation needs its own")
        return run

    def _in_temporary(self, name: str) -> PortableRun:
        """Move to a temporary folder that is removed with this object."""
        root = Path(tempfile.mkdtemp(prefix="langevin-")).resolve()
        weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        self.path = root / name
        return self

    def copy_to(self, target: Path, *, overwrite: bool = False) -> None:
        """Copy the run and its sentences; the copy's recipe names the copied sentences."""
        target = target.resolve()
        overwrite = overwrite and target != self.path and replaceable(target)
        with replacing_with_sentences(target) if overwrite else contextlib.nullcontext():
            self._copy(target)

    def _copy(self, target: Path) -> None:
        refuse_used(target)
        leave = shutil.ignore_patterns(RECIPE, LOCK)
        try:
            if data_beside(self.path).exists():
                put_beside(target, data_beside(self.path).read_bytes())
            shutil.copytree(self.path, target, ignore=leave, dirs_exist_ok=True)
        except OSError as error:
            raise LangevinError(
                f"cannot copy the run to {target}: {error}; choose another folder"
            ) from None
        relocate(RunFolder(self.path), str(data_beside(self.path)), target)

    def __getstate__(self) -> dict[str, Any]:
        files = [path for path in (*self.path.rglob("*"), data_beside(self.path))
                 if path.is_file() and path.name != LOCK]
        return {"name": self.path.name, "corpus": str(data_beside(self.path)),
                "files": {str(p.relative_to(self.path.parent)): p.read_bytes() for p in files}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        root = self._in_temporary(state["name"]).path.parent
        for name, content in state["files"].items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        relocate(RunFolder(self.path), state["corpus"], self.path)


@contextlib.contextmanager
def replacing_with_sentences(target: Path) -> Iterator[None]:
    """Like `replacing`, with the sentences beside the old run, if its recipe names them."""
    beside, corpus = data_beside(target), RunFolder(target).recipe.data.corpus
    aside = beside.with_name(f".{beside.name}.replaced-{secrets.token_hex(4)}")
    with replacing(target):
        ours = beside.is_file() and not beside.is_symlink() and corpus == str(beside)
        if ours:
            beside.rename(aside)
        try:
            yield
        except BaseException:
            if ours:
                aside.replace(beside)
            raise
    if ours:
        aside.unlink()
        sync_folder(aside.parent)


def relocate(run: RunFolder, before: str, path: Path) -> None:
    """Give the copy of a run in `path` its recipe, which makes a folder a run and thus comes last.

    It names the sentences beside the copy; a recipe that nobody edited is not called edited.
    """
    text, origin = relocated(run.recipe, before, path).to_toml().encode(), run.origin
    if origin.recipe_sha256 is not None and not run.recipe_is_edited:
        known = hashlib.sha256(text).hexdigest()
        write_record(path / ORIGIN, origin.model_copy(update={"recipe_sha256": known}))
    write_atomic(path / RECIPE, text)


def relocated(recipe: Recipe, before: str, path: Path) -> Recipe:
    """The recipe of a run that is now in `path`, with its sentences beside it as before."""
    if recipe.data.corpus != before:
        return recipe
    data = recipe.data.model_copy(update={"corpus": str(data_beside(path))})
    return recipe.model_copy(update={"data": data})


def refuse_used(path: Path, way_out: str = "choose another one") -> None:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise LangevinError(f"expected an empty folder for the run, {path} is not; {way_out}")


def data_beside(path: Path) -> Path:
    """Where the training sentences of a run folder are."""
    return path.with_name(path.name + ".sentences.jsonl")


def write_training(path: Path, texts: Sequence[str], labels: Sequence[str]) -> None:
    """Texts with their labels, for the run in `path`."""
    pairs = zip(texts, labels, strict=True)
    lines = (json.dumps({"label": label, "text": text}) + "\n" for text, label in pairs)
    put_beside(path, "".join(lines).encode())


def put_beside(path: Path, content: bytes) -> None:
    """Write the sentences of the run in `path`; the same may be there already, others not."""
    beside = data_beside(path)
    if beside.exists() and (not beside.is_file() or beside.read_bytes() != content):
        raise LangevinError(f"expected no file at {beside}, where the training sentences go; move "
                            f"it away or choose another folder")
    write_atomic(beside, content)
