"""A run on disk: recipe, vocabulary, origin, samples, and the checkpoint from which it resumes exactly."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import safetensors.torch
import torch
from torch import Tensor

from .data.vocab import Vocabulary
from .errors import LangevinError
from .files import write_atomic
from .posterior.store import SampleStore
from .recipe import Recipe, load_recipe

RECIPE, ORIGIN, VOCABULARY, CHECKPOINT, SAMPLES = (
    "recipe.toml", "origin.json", "vocabulary.json", "checkpoint.safetensors", "samples",
)


class RunFolder:
    """Paths and formats of a run folder; decides nothing."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / RECIPE).is_file():
            what = "no run in it" if self.path.is_dir() else "nothing there"
            raise LangevinError(f"expected a run folder at {self.path}, found {what}; pass the --out of a training run")

    @classmethod
    def create(cls, path: str | Path, recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any]) -> RunFolder:
        """Start a new run; the recipe is written last, which makes the folder a run."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            what = "already holds a run" if (path / RECIPE).exists() else "is not an empty folder"
            raise LangevinError(
                f"{path} {what}; choose another --out, go on with 'langevin resume {path}', or allow --overwrite"
            )
        write_json(path / VOCABULARY, vocabulary.to_json())
        write_json(path / ORIGIN, origin(recipe) | facts)
        write_atomic(path / RECIPE, recipe.to_toml().encode())
        return cls(path)

    @property
    def recipe(self) -> Recipe:
        return load_recipe(self.path / RECIPE)

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.from_json(self._json(VOCABULARY))

    @property
    def origin(self) -> dict[str, Any]:
        return self._json(ORIGIN)

    def store(self, *, skip_damaged: bool = False) -> SampleStore:
        return SampleStore(self.path / SAMPLES, skip_damaged=skip_damaged)

    def save_checkpoint(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        write_atomic(
            self.path / CHECKPOINT, safetensors.torch.save(tensors, metadata={"progress": json.dumps(progress)})
        )

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and progress of the last checkpoint, or None before the first."""
        progress = self.progress()
        if progress is None:
            return None
        return safetensors.torch.load_file(self.path / CHECKPOINT), progress

    def progress(self) -> dict[str, Any] | None:
        """How far the run is and its learning curve, without loading the weights."""
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        try:  # by hand, through one handle: the file may be replaced by a newer one at any moment
            with path.open("rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
                start, size = file.tell(), os.fstat(file.fileno()).st_size
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            if start + max(ends, default=0) != size:
                raise ValueError(f"expected {start + max(ends, default=0)} bytes, it has {size}")
            progress: dict[str, Any] = json.loads(header["__metadata__"]["progress"])
            return progress
        except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise LangevinError(
                f"the checkpoint {path} cannot be read ({error}); delete it to start this run again from its recipe"
            ) from None

    def _json(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads((self.path / name).read_text())
            return content
        except (OSError, ValueError) as error:
            raise LangevinError(f"the run folder is damaged: {self.path / name} cannot be read ({error})") from None


def write_json(path: Path, content: Any) -> None:
    write_atomic(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def origin(recipe: Recipe) -> dict[str, Any]:
    """With what and where the run was made."""
    return {
        "versions": {"langevin": version("langevin"), "torch": torch.__version__, "numpy": numpy.__version__,
                     "python": platform.python_version()},
        "commit": commit(),
        "machine": {"system": platform.system(), "cores": os.cpu_count(), "device": recipe.run.device,
                    "threads": recipe.run.threads or torch.get_num_threads()},
    }


def commit() -> str | None:
    """The git commit of the source tree that this package runs from, if it is one."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "log", "-1", "--format=%h"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
