"""The one process that writes in a run folder: its lock, its samples, its checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from ..errors import LangevinError
from ..files import write_atomic
from ..recipe import Recipe
from .checkpoint import load_log_probs, save_checkpoint, save_log_probs
from .folder import CHECKPOINT, ORIGIN, PLATEAU, RECIPE, RunFolder
from .listing import MANIFEST
from .lock import FolderLock, lock_folder
from .manifest import Choice, RunProgress, SampleRecord
from .records import write_record
from .validation import validation_of


class RunWriter:
    """Writes while it is `held`; between, only where nobody else has written since."""

    def __init__(self, folder: RunFolder, patience: float = 0.0) -> None:
        self.folder, self.patience = folder, patience
        self.lock: FolderLock = self._lock()
        folder.sweep()
        self.store = folder.store()
        self.left_at: tuple[object, ...] | None = None
        """How the files of the folder stood when the lock was given back."""

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Only we write; if the folder was given back before, only where it is as it was."""
        if not self.lock.alive:
            self._refuse_changes()
            self.lock = self._lock()
        with self.lock:
            if self.left_at is not None:  # again: until the lock was ours, somebody could write
                self._refuse_changes()
            try:
                yield
            finally:
                self.left_at = self._stand()

    def append(
        self, model: nn.Module, step: int, log_probs: Tensor | None = None, **about: Any
    ) -> None:
        """A sample, and what validation said of it, where that is kept."""
        self.lock.expect_folder()
        sample = self.store.append(model, step, **about)
        if log_probs is not None:
            save_log_probs(validation_of(sample.path), log_probs)

    def log_probs(self) -> list[Tensor | None]:
        """Of validation, of each sample; None where they were not kept."""
        return [load_log_probs(validation_of(sample.path)) for sample in self.store.samples]

    def records(self) -> tuple[SampleRecord, ...]:
        """Of all samples, as a checkpoint knows them."""
        return tuple(sample.record() for sample in self.store.samples)

    def save(self, tensors: dict[str, Tensor], progress: RunProgress) -> None:
        """All that the rest of the run depends on, as one file."""
        with contextlib.nullcontext() if self.lock.busy else self.held():
            self.lock.expect_folder()
            self.folder.save_checkpoint(tensors, progress)

    def save_plateau(self, tensors: dict[str, Tensor], progress: RunProgress) -> None:
        """The same at the end of a plateau of the rate, from where a longer run would go on."""
        self.lock.expect_folder()
        save_checkpoint(self.folder.path / PLATEAU, tensors, progress)

    def load(self) -> tuple[dict[str, Tensor], RunProgress] | None:
        """The last checkpoint, with the samples that it knows; None, and no samples, if none."""
        loaded = self.folder.load_checkpoint()
        if loaded is None:
            self.store.forget_after(0)
            return None
        _, progress = loaded
        self.store.return_to(progress.recorded, progress.samples)
        return loaded

    def forget(self) -> None:
        """Drop all samples for good; the checkpoint knows none from then on."""
        with self.held():
            if loaded := self.folder.load_checkpoint():
                tensors, progress = loaded
                self.save(tensors, progress.model_copy(update={"samples": ()}))
            self.store.forget_after(0)

    def remember(self, last: int, score: float) -> None:
        """That validation prefers the average of the last so many samples."""
        of = tuple(f"{sample.chain}:{sample.sha256}" for sample in self.store.samples)
        self.folder.remember(Choice(how="backward", samples=last, score=score, of=of))

    def amend(self, recipe: Recipe) -> None:
        """Another recipe for this run; one that was edited by hand before stays called so."""
        text, origin = recipe.to_toml().encode(), self.folder.origin
        known = None if self.folder.recipe_is_edited else hashlib.sha256(text).hexdigest()
        write_atomic(self.folder.path / RECIPE, text)
        if known is not None:
            write_record(self.folder.path / ORIGIN, origin.model_copy(update={"recipe_sha256": known}))

    def _lock(self) -> FolderLock:
        return lock_folder(self.folder.path, self.patience)

    def _refuse_changes(self) -> None:
        if self.lock.lost or self.left_at != self._stand():
            raise LangevinError(
                f"the run in {self.folder.path} went on elsewhere while this trainer stood still; "
                f"open it anew by training.session.resume")

    def _stand(self) -> tuple[object, ...]:
        """Which checkpoint and which list of samples the folder has."""
        paths = (self.folder.path / CHECKPOINT, self.store.folder / MANIFEST)
        found = [path.stat() if path.exists() else None for path in paths]
        return tuple(status and (status.st_ino, status.st_mtime_ns, status.st_size)
                     for status in found)


class Onlooker:
    """In place of a writer in processes that write nothing: another one does."""

    def held(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def append(
        self, model: nn.Module, step: int, log_probs: Tensor | None = None, **about: Any
    ) -> None:
        """Nothing."""

    def log_probs(self) -> list[Tensor | None]:
        return []

    def records(self) -> tuple[SampleRecord, ...]:
        return ()

    def save(self, tensors: dict[str, Tensor], progress: RunProgress) -> None:
        """Nothing."""

    def save_plateau(self, tensors: dict[str, Tensor], progress: RunProgress) -> None:
        """Nothing."""

    def load(self) -> tuple[dict[str, Tensor], RunProgress] | None:
        return None

    def remember(self, last: int, score: float) -> None:
        """Nothing."""
