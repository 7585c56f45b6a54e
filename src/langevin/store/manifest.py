"""The records of a run folder: with what it was made, how far it is, which samples it has."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy
import torch
from pydantic import AfterValidator, Field

from ..process import launcher
from ..recipe import Recipe
from .records import Record

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Measured = int | Annotated[float, Field(allow_inf_nan=True)]
"""What was measured of a model, which may be beyond all bounds."""
Metrics = dict[str, Measured]


def in_fractions(metrics: dict[str, Any]) -> dict[str, Any]:
    """Metrics as version 0.1.0 wrote them, errors in per cent, in the units and names of today."""
    count = next((metrics[name] for name in ("tokens", "sentences") if name in metrics), None)
    named = {name: value / 100 if name == "error" else value
             for name, value in metrics.items() if name not in ("tokens", "sentences")}
    return named if count is None else named | {"items": count}


def with_fractions(content: Any, keys: tuple[str, ...]) -> Any:
    """The same with the metrics under these keys in fractions; what is none of ours as it is."""
    if not isinstance(content, dict):
        return content
    old = {key: content[key] for key in keys if isinstance(content.get(key), dict)}
    if not all(type(v) in (int, float) for metrics in old.values() for v in metrics.values()):
        return content
    return content | {key: in_fractions(metrics) for key, metrics in old.items()}


Facts = dict[str, Any]
"""What a task remembers of its data; the task itself knows what it must be."""


class Marker(Record):
    """Of which kind a folder of ours is."""

    format: Literal[1]
    kind: Literal["run", "chains", "export"]


class Chains(Record):
    """The folders of the chains."""

    format: Literal[1] = 1
    chains: tuple[str, ...] = Field(min_length=1)


class Tokens(Record):
    """A vocabulary as it lies on disk."""

    level: str
    running: bool = False
    tokens: tuple[str, ...]


class Machine(Record):
    system: str
    processor: str
    cores: Annotated[int, Field(ge=1)] | None = None
    device: str
    threads: Annotated[int, Field(ge=1)]


class TeacherSample(Record):
    """A sample of another run, by its path."""

    file: str
    step: Count
    sha256: Sha256
    chain: Count = 0


class Teacher(Record):
    """Who taught a student, and how."""

    run: str
    per_row: Annotated[int, Field(ge=1)]
    data_weight: Annotated[float, Field(ge=0, le=1)]
    generated: Count
    select: str
    discard: Count
    samples: tuple[TeacherSample, ...] = Field(min_length=1)


def name_versions(versions: dict[str, str]) -> dict[str, str]:
    """Refuses those without the two that are shown."""
    if missing := {"langevin", "torch"} - versions.keys():
        raise ValueError(f"versions of {' and '.join(sorted(missing))} beside the others")
    return versions


SUMS = ("recipe_sha256", "vocabulary_sha256")
"""By which an origin knows the files beside it."""


class Origin(Record):
    """With what, where and from what a run was made."""

    NEWEST = 2
    SEALED_SINCE = 2

    format: int = 2
    versions: Annotated[dict[str, str], AfterValidator(name_versions)]
    commit: str | None = None
    machine: Machine
    teacher: Teacher | None = None
    recipe_sha256: Sha256 | None = None
    """Of the recipe as the run began; the file may be edited on purpose."""
    vocabulary_sha256: Sha256 | None = None
    launcher: str | None = None
    """The torchrun that began it, and that may start `train` anew to go on with it."""
    data: Facts

    @classmethod
    def upgrade(cls, content: dict[str, Any]) -> dict[str, Any]:
        """Version 0.1.0 had the facts of the data beside the others, and no number."""
        if "format" in content:
            return content
        values = {key: value for key, value in content.items() if key in cls.model_fields}
        values.pop("data", None)
        data = {key: value for key, value in content.items() if key not in values}
        return values | {"format": 2, "data": data}

    def flat(self) -> dict[str, Any]:
        """All in one table, JSON-ready, as records of results have it."""
        gone = {"data", "format", "launcher", *SUMS}
        values = self.model_dump(mode="json", exclude=gone)
        return {key: value for key, value in values.items() if key != "teacher" or value} | self.data


class SampleRecord(Record):
    """What the manifest lists of a sample."""

    file: str
    step: Count
    sha256: Sha256
    about: dict[str, Any] = Field(default_factory=dict)


class HistoryLine(Record):
    """A line of the learning curve."""

    step: Count
    epoch: Annotated[float, Field(ge=0)]
    lr: float
    temperature: float
    train_loss: float
    valid: Metrics
    average: Metrics | None = None
    """Of the running average, where the line has a sample."""
    chain: Count | None = None
    """Where lines of several chains are told together."""


class RunProgress(Record):
    """How far a run is: all of a checkpoint that is not a tensor."""

    NEWEST = 3

    format: int = 3
    step: Count
    total: Count
    recorded: Count
    finished: bool
    stopped_early: bool
    turned: Count | None = None
    """The step at which validation ended the plateau of the rate, if it did."""
    clipped: Count
    clip_asked: Count
    averaged: Count
    """Samples in the running average."""
    groups: tuple[dict[str, Any], ...] = ()
    """Settings of the sampler's groups of parameters."""
    losses: tuple[float, ...] = ()
    """Of the batches since the last line of the history."""
    history: tuple[HistoryLine, ...] = ()
    seconds: Annotated[float, Field(ge=0)]
    num_data: Annotated[int, Field(ge=1)]
    processes: Annotated[int, Field(ge=1)] | None = None
    """That trained together; None: one."""
    samples: tuple[SampleRecord, ...] | None = None
    """As the manifest lists them; unknown in the oldest checkpoints."""

    @classmethod
    def upgrade(cls, content: dict[str, Any]) -> dict[str, Any]:
        """Before format 3 the errors of the history were per cent."""
        number = content.get("format", 1)
        if type(number) is not int or number > 2 or not isinstance(content.get("history"), list):
            return content
        history = [with_fractions(line, ("valid", "average")) for line in content["history"]]
        return content | {"format": 3, "history": history}

    def lines(self) -> list[dict[str, Any]]:
        """The history, JSON-ready."""
        return [line.to_dict() for line in self.history]


def joint_progress(each: Sequence[RunProgress | None]) -> RunProgress | None:
    """Steps, seconds and clippings of all chains summed; their curves with the number of each."""
    begun = [progress for progress in each if progress]
    if not begun:
        return None
    return RunProgress(
        step=sum(p.step for p in begun), total=len(each) * max(p.total for p in begun),
        recorded=sum(p.recorded for p in begun), clipped=sum(p.clipped for p in begun),
        clip_asked=sum(p.clip_asked for p in begun), averaged=sum(p.averaged for p in begun),
        seconds=sum(p.seconds for p in begun), num_data=begun[0].num_data,
        finished=len(begun) == len(each) and all(p.finished for p in begun),
        stopped_early=any(p.stopped_early for p in begun),
        history=tuple(line.model_copy(update={"chain": number})
                      for number, p in enumerate(each) if p for line in p.history),
    )


class Choice(Record):
    """The collection that validation prefers, of which samples, by what score."""

    NEWEST = 2

    format: int = 2
    how: Annotated[str, Field(pattern="^(forward|backward|thinned)$")]
    samples: Annotated[int, Field(ge=1)]
    """Of each chain."""
    score: Measured
    of: tuple[str, ...]

    @classmethod
    def upgrade(cls, content: dict[str, Any]) -> dict[str, Any]:
        """The first had no number; before format 2 the error of classifiers was per cent."""
        return {"format": 1} | content


def describe_origin(
    recipe: Recipe, data: Facts, teacher: Teacher | None = None, recipe_sha256: str | None = None,
    vocabulary_sha256: str | None = None,
) -> Origin:
    """Of a run that begins here and now."""
    versions = {"langevin": version("langevin"), "torch": torch.__version__,
                "numpy": numpy.__version__, "python": platform.python_version()}
    machine = Machine(
        system=platform.system(), processor=processor_name(), cores=os.cpu_count(),
        device=recipe.run.device, threads=recipe.run.threads or torch.get_num_threads(),
    )
    return Origin(versions=versions, commit=commit(), machine=machine, teacher=teacher,
                  recipe_sha256=recipe_sha256, vocabulary_sha256=vocabulary_sha256,
                  launcher=launcher(), data=data)


def processor_name() -> str:
    """As it calls itself, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = (line.partition(":")[2] for line in lines if line.startswith("model name"))
        return next(names).strip()
    except (OSError, StopIteration):
        return platform.machine()


@cache
def commit() -> str | None:
    """The git commit of the tree that this package runs from, "-changed" where it was edited."""
    here = Path(__file__).resolve()

    def git(*words: str) -> str:
        command = ["git", "-C", str(here.parent), *words]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return ran.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # not the tree of someone who installed it
        changed = git("diff", "--name-only", "HEAD", "--", ".")
        return git("log", "-1", "--format=%h") + ("-changed" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
