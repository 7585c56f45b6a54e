"""A run on disk: recipe, vocabulary, origin, samples, and the checkpoint from which it resumes exactly."""

from __future__ import annotations

import glob
import json
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import TEMPORARY, inside, listed_name, make_folder, write_atomic
from ..recipe import Recipe, load_recipe
from .lock import LOCK, lock_folder
from .processor import processor_name
from .samples import MANIFEST, SAMPLE, SampleStore

RECIPE, ORIGIN, VOCABULARY, CHECKPOINT, SAMPLES, CHAINS = (
    "recipe.toml", "origin.json", "vocabulary.json", "checkpoint.safetensors", "samples", "chains.json",
)
MARKER = ".langevin-run.json"
"""Written first into every folder that we make; says of which kind it is: run, chains or export."""
COLLECTION, DECISIONS, GENERATED, LOG, REPORT, EVALUATION = (
    "collection.json", "decision.json", "generated.safetensors", "log.txt", "report.html", "evaluation.json",
)
"""What else may be in a run folder: the collection that validation prefers, of which samples; the rules of `decide`;
the text that a student's teacher wrote, so that it is written once; what the process of a chain said; the page of
`report`; the numbers of a member of a cross-validation."""
CHAIN = re.compile(r"chain-\d{1,6}")
"""The folders of chains."""


def refuse_occupied(path: Path) -> None:
    """A new run needs a folder that is empty or not there."""
    if path.exists() and (not path.is_dir() or any(found.name != LOCK for found in path.iterdir())):
        if not (path / RECIPE).exists():
            raise LangevinError(f"{path} is not an empty folder; choose another --out")
        raise LangevinError(f"{path} already holds a run; choose another --out, go on with 'langevin resume {path}', "
                            f"or allow --overwrite")


class RunFolder:
    """Paths and formats of a run folder; decides nothing.

    A folder of several chains has `chains.json`, which names its subfolders: ordinary run folders whose recipes differ
    in their seeds alone. It reads like one run: its store gives the samples of all chains.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / RECIPE).is_file():
            what = "no run in it" if self.path.is_dir() else "nothing there"
            kept = "".join(f". The run that --overwrite was to replace is in {old}" for old in put_aside(self.path))
            raise LangevinError(
                f"expected a run folder at {self.path}, found {what}; pass the --out of a training run{kept}"
            )
        self.chains = self._open_chains() if (self.path / CHAINS).is_file() else ()
        """The chains of a folder of several; empty for an ordinary run."""

    @classmethod
    def create(
        cls, path: str | Path, recipe: Recipe, vocabulary: Vocabulary, facts: dict[str, Any],
        chains: Sequence[Recipe] = (),
    ) -> RunFolder:
        """Start a new run, or one for each recipe in `chains`; the recipe is written last, which makes it a run."""
        path = Path(path)
        refuse_occupied(path)
        try:
            make_folder(path)
        except OSError as error:
            raise LangevinError(f"cannot write {path}: {error.strerror}; choose another folder") from None
        with lock_folder(path):
            refuse_occupied(path)
            write_marker(path, "chains" if chains else "run")
            write_json(path / VOCABULARY, vocabulary.to_json())
            write_json(path / ORIGIN, origin(recipe) | facts)
            names = [f"chain-{number}" for number in range(len(chains))]
            for name, own in zip(names, chains, strict=True):
                cls.create(path / name, own, vocabulary, facts)
            if chains:
                write_json(path / CHAINS, {"format": 1, "chains": names})
            write_atomic(path / RECIPE, recipe.to_toml().encode())
        return cls(path)

    @property
    def recipe(self) -> Recipe:
        return load_recipe(inside(self.path, RECIPE))

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.from_json(self._json(VOCABULARY))

    @property
    def origin(self) -> dict[str, Any]:
        return self._json(ORIGIN)

    def store(self, *, skip_damaged: bool = False) -> SampleStore:
        if self.chains:
            stores = [inside(chain.path, SAMPLES) for chain in self.chains]
            return SampleStore.of_chains(self.path, stores, skip_damaged=skip_damaged)
        return SampleStore(inside(self.path, SAMPLES), skip_damaged=skip_damaged)

    def save_checkpoint(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        write_atomic(
            self.path / CHECKPOINT, safetensors.torch.save(tensors, metadata={"progress": json.dumps(progress)})
        )

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and progress of the last checkpoint, or None before the first."""
        progress = self.progress()
        if progress is None:
            return None
        return safetensors.torch.load_file(inside(self.path, CHECKPOINT)), progress

    def progress(self) -> dict[str, Any] | None:
        """How far the run is and its learning curve, without loading the weights; of all chains together."""
        if self.chains:
            return joint_progress([chain.progress() for chain in self.chains])
        path = inside(self.path, CHECKPOINT)
        if not path.exists():
            return None
        try:  # one handle: the file may be replaced by a newer one at any moment
            with safe_open(path, "pt") as file:
                progress: dict[str, Any] = json.loads(file.metadata()["progress"])
            return progress
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise LangevinError(
                f"the checkpoint {path} cannot be read ({error}); delete it to start this run again from its recipe"
            ) from None

    def sweep(self) -> None:
        """Remove what writers that were killed left unfinished; only for who has the lock."""
        for path in (*self.path.glob(".*.tmp"), *inside(self.path, SAMPLES).glob(".*.tmp")):
            unfinished = TEMPORARY.fullmatch(path.name)
            name = unfinished["target"] if unfinished else ""
            if name in (CHECKPOINT, MANIFEST) or SAMPLE.fullmatch(name):
                path.unlink(missing_ok=True)

    def _open_chains(self) -> tuple[RunFolder, ...]:
        try:
            names = [listed_name(name, CHAIN, self.path / CHAINS) for name in self._json(CHAINS)["chains"]]
            if len(set(names)) < len(names):
                raise LangevinError(f"expected each chain once in {self.path / CHAINS}, got {', '.join(names)}")
            chains = tuple(RunFolder(inside(self.path, name)) for name in names)
        except (KeyError, TypeError) as error:
            raise LangevinError(f"expected the names of chains in {self.path / CHAINS}, got none ({error!r})") from None
        refuse_different_chains((self, *chains))
        return chains

    def _json(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(inside(self.path, name).read_text("utf-8"))
            return content
        except (OSError, ValueError) as error:
            raise LangevinError(f"the run folder is damaged: {self.path / name} cannot be read ({error})") from None


def joint_progress(each: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Steps, seconds and clippings of all chains summed; lines of the learning curves with the number of the chain."""
    begun = [progress for progress in each if progress]
    if not begun:
        return None
    summed = {key: sum(p[key] for p in begun) for key in ("step", "clipped", "clip_asked", "averaged", "seconds")}
    lines = [line | {"chain": number} for number, p in enumerate(each) if p for line in p["history"]]
    return summed | {
        "total": len(each) * max(p["total"] for p in begun), "num_data": begun[0]["num_data"], "history": lines,
        "finished": len(begun) == len(each) and all(p["finished"] for p in begun),
        "stopped_early": any(p["stopped_early"] for p in begun),
    }


def refuse_different_chains(folders: Sequence[RunFolder]) -> None:
    """Chains are runs of one recipe on the same data: averages and diagnostics over anything else mean nothing."""
    first, facts = folders[0], folders[0].origin
    ours = recipe_but_seed(first.recipe)
    for other in folders[1:]:
        theirs, their_facts = recipe_but_seed(other.recipe), other.origin
        keys = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
        if keys:
            raise LangevinError(
                f"expected chains of one recipe that differ in their seeds alone, got {keys[0]} = {ours.get(keys[0])} "
                f"in {first.path} and {theirs.get(keys[0])} in {other.path}; name runs of one recipe"
            )
        if facts.get("data_sha256") != their_facts.get("data_sha256"):
            raise LangevinError(f"expected chains trained on the same data, {other.path} saw another than {first.path}")


def recipe_but_seed(recipe: Recipe) -> dict[str, Any]:
    """What a recipe computes, flat and without seed and title."""
    tables = recipe.what_is_computed()
    flat = {f"{name}.{key}": value for name, table in tables.items() if isinstance(table, dict)
            for key, value in table.items()}
    return {"task": recipe.task} | {key: value for key, value in flat.items() if key != "run.seed"}


def write_marker(path: Path, kind: str) -> None:
    """Say that a folder is ours, and of which kind: run, chains or export."""
    write_json(path / MARKER, {"format": 1, "kind": kind})


def put_aside(path: Path) -> list[Path]:
    """Where what was in this folder was kept while something else was to replace it, if that was cut off."""
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.replaced-*")) if path.name else []


def write_json(path: Path, content: Any) -> None:
    write_atomic(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def origin(recipe: Recipe) -> dict[str, Any]:
    """With what and where the run was made."""
    return {
        "versions": {"langevin": version("langevin"), "torch": torch.__version__, "numpy": numpy.__version__,
                     "python": platform.python_version()},
        "commit": commit(),
        "machine": {"system": platform.system(), "processor": processor_name(), "cores": os.cpu_count(),
                    "device": recipe.run.device, "threads": recipe.run.threads or torch.get_num_threads()},
    }


def commit() -> str | None:
    """The git commit of the source tree that this package runs from, if it is one; "-changed" where it was edited."""
    here = Path(__file__).resolve()

    def git(*words: str) -> str:
        command = ["git", "-C", str(here.parent), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # not the tree of someone who has installed it
        return git("log", "-1", "--format=%h") + ("-changed" if git("diff", "--name-only", "HEAD", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
