"""A folder that stands alone, written and read: config, vocabulary, samples, card; no data.

The layout follows the habits of the Hugging Face hub: `config.json`, safetensors, `README.md` with
YAML on top. What to write is for others to decide and to measure.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import safetensors.torch
import torch
from pydantic import Field

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import inside, no_file, read_bytes, sync_folder, write_atomic
from ..recipe import Recipe
from ..recipe.load import validate
from .facts import check_facts
from .folder import SAMPLES, VOCABULARY, RunFolder, read_vocabulary, write_marker
from .linear_members import has_linear_members
from .listing import MANIFEST, OLD_MANIFEST, Listing
from .lock import LOCK, lock_folder
from .manifest import Facts, Metrics, Sha256, with_fractions
from .members import has_members, read_members, write_members
from .records import Record, read_record, write_record, write_sealed
from .replacement import CARD, CONFIG, new_folder, replaceable, replacing, sweep_unfinished
from .samples import Sample

CHECKED = {1: (VOCABULARY, f"{SAMPLES}/{OLD_MANIFEST}"), 2: (VOCABULARY, f"{SAMPLES}/{MANIFEST}"),
           3: (VOCABULARY, f"{SAMPLES}/{MANIFEST}")}
"""Files whose checksums the config lists, by its format."""
REMEDY = "export it anew"


class ExportMetrics(Record):
    """How good the samples of an exported folder are, and how that is known."""

    split: str
    source: str
    samples: Annotated[int, Field(ge=1)]
    last: Metrics
    averaged: Metrics
    averaged_float32: Metrics | None = None
    """Of the samples before they were rounded."""


class ExportConfig(Record):
    """Everything that rebuilds the model and says what it is."""

    NEWEST = 3
    SEALED_SINCE = 2

    format: int = 3
    library_name: Literal["langevin"] = "langevin"
    langevin: str
    task: str
    title: str
    model: dict[str, Any]
    sampler: dict[str, Any]
    samples: Annotated[int, Field(ge=1)]
    precision: Literal["float32", "float16"]
    recipe: dict[str, Any]
    """What is computed; of the paths of data only the names of the files."""
    facts: Facts
    metrics: ExportMetrics | None = None
    files: dict[str, Sha256] = Field(default_factory=dict)
    counts: Literal[True] | None = None
    """Whether n-gram counts of the training text are in the folder."""
    linear_parts: Literal[True] | None = None
    """Whether linear parts of a classifier are."""

    @classmethod
    def upgrade(cls, content: dict[str, Any]) -> dict[str, Any]:
        """Before format 3 errors were per cent, and the last sample was called single."""
        old = content.get("metrics")
        if content.get("format", 1) > 2 or not isinstance(old, dict):
            return content
        new = with_fractions(old, ("single", "averaged", "averaged_float32"))
        renamed = {"last" if key == "single" else key: value for key, value in new.items()}
        return content | {"metrics": renamed}


def describe(folder: RunFolder, samples: int, *, float16: bool) -> ExportConfig:
    """The config of so many samples of a run, but for metrics and checksums."""
    recipe, origin = folder.recipe, folder.origin
    name, settings = recipe.sampler.resolved(folder.facts["num_data"])
    computed = recipe.what_is_computed()
    computed["data"] = {
        key: Path(value).name if isinstance(value, str) and "/" in value else value
        for key, value in computed["data"].items()
    }
    return ExportConfig(
        langevin=version("langevin"), task=recipe.task, title=recipe.title,
        model=computed["model"], sampler={"name": name} | settings, samples=samples,
        precision="float16" if float16 else "float32", recipe=computed,
        facts={"versions": origin.versions, "commit": origin.commit, **origin.data},
    )


@contextlib.contextmanager
def new_export(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder to fill, which is at `out` when this ends; if anything fails, `out` is as before."""
    refuse_used_target(out, overwrite=overwrite)
    sweep_unfinished(out)
    making = new_folder(out)
    try:
        with lock_folder(making):  # so that it is known to be ours, until this process ends
            write_marker(making, "export")
            yield making
        (making / LOCK).unlink()
        with replacing(out) if overwrite else contextlib.nullcontext():
            refuse_used_target(out, overwrite=False)
            making.rename(out)
            sync_folder(out.parent)
    except OSError as error:
        raise LangevinError(f"cannot put the export at {out}: {error.strerror}; choose another "
                            f"folder") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)  # made above, under a random name


def write_samples(folder: Path, samples: Sequence[Sample], *, float16: bool) -> list[Sample]:
    """The samples under new numbers, listed as in a run; `about` tells the chains apart."""
    written, folder = list[Sample](), folder / SAMPLES
    for number, sample in enumerate(samples):
        tensors = sample.load()
        if float16:
            tensors = {name: tensor.half() if tensor.is_floating_point() else tensor
                       for name, tensor in tensors.items()}
            for name, tensor in tensors.items():
                if not torch.isfinite(tensor).all():
                    raise LangevinError(f"{name} of {sample.path} is too large for float16; export "
                                        f"without --float16")
        content = safetensors.torch.save(tensors)
        target = folder / f"sample-{number:04d}.safetensors"
        write_atomic(target, content)
        about = sample.about | {"chain": sample.chain}
        sha256 = hashlib.sha256(content).hexdigest()
        written.append(Sample(target, sample.step, sha256, about, sample.chain))
    Listing(folder).replace(sample.record() for sample in written)
    return written


def write_about(
    folder: Path, config: ExportConfig, vocabulary: Vocabulary, card: str
) -> ExportConfig:
    """All but the samples, which are there already; the config, with the checksums, comes last."""
    write_sealed(folder / VOCABULARY, vocabulary.to_json())
    write_atomic(folder / CARD, card.encode())
    sums = {name: sha256_of(folder / name) for name in CHECKED[ExportConfig.NEWEST]}
    config = config.model_copy(update={"files": sums})
    write_record(folder / CONFIG, config)
    return config


def copy_counts(folder: RunFolder, out: Path) -> None:
    """The members of a run beside the samples; they contain the training text."""
    found = read_members(folder.path, folder.vocabulary)
    if found is None:
        raise LangevinError(f"expected a run with counts to export --with-counts, {folder.path} has "
                            f"none; add them by 'langevin pool {folder.path}', or leave it out")
    write_members(out, found.record, found.counts, found.spelling)


def refuse_used_target(out: Path, *, overwrite: bool) -> None:
    """Only an empty folder, or an export when that is allowed, gives way."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not is_export(out):
        raise LangevinError(f"expected a new folder at {out}, it holds something else; choose "
                            f"another")
    if not overwrite:
        raise LangevinError(f"{out} already holds an exported model; choose another folder or "
                            f"allow --overwrite")
    replaceable(out)


def is_export(folder: Path) -> bool:
    try:
        read_config(folder)
    except LangevinError:
        return False
    return True


def read_config(folder: Path) -> ExportConfig:
    return read_record(inside(folder, CONFIG), ExportConfig, REMEDY)


def read_export(folder: Path) -> tuple[ExportConfig, Recipe, Vocabulary]:
    """What rebuilds the model, after checking that it is what was written."""
    config = read_config(folder)
    checked = CHECKED[config.format]
    for name, expected in config.files.items():
        if name not in checked:
            raise LangevinError(f"expected checksums of {', '.join(checked)} in {folder / CONFIG}, "
                                f"got one of {name!a:.80}; {REMEDY}")
        if problem := no_file(inside(folder, name)):
            raise LangevinError(f"expected {folder / name}, which is {problem}; {REMEDY}")
        if sha256_of(inside(folder, name)) != expected:
            raise LangevinError(f"{folder / name} was changed after it was exported (its checksum "
                                f"differs); {REMEDY}")
    if config.counts and not has_members(folder):
        raise LangevinError(f"expected counts in {folder}, as its {CONFIG} says, found none; {REMEDY}")
    if config.linear_parts and not has_linear_members(folder):
        raise LangevinError(f"expected linear parts in {folder}, as its {CONFIG} says, found none; "
                            f"{REMEDY}")
    recipe = validate(config.recipe)
    check_facts(config.facts, recipe.task, folder / CONFIG)
    return config, recipe, read_vocabulary(inside(folder, VOCABULARY))


def sha256_of(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()
