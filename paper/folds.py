"""One recipe on several folds, or with several seeds where the test split is given; side by side,
resumable.

Each member is an ordinary run folder below one folder, trained by a process of its own on one
thread and evaluated there (`evaluation.json`, as `python -m paper record` writes it). A member that
has its evaluation is done; one that has not goes on from its checkpoint. So killing anything at any
time loses at most a minute.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langevin.data.catalogue import DATASETS
from langevin.errors import LangevinError
from langevin.files import write_atomic
from langevin.recipe import Recipe, SentenceData
from langevin.store.folder import EVALUATION, RECIPE, RunFolder
from langevin.store.records import write_json
from langevin.tasks import open_task
from langevin.training.engines import Engine
from langevin.training.jobs import Job, run_side_by_side
from langevin.errors import Interrupted

from .numbers import read_result
from .runs import command, refuse_other

SUMMARY = "crossval.json"
METRICS = ("error", "nll", "ece", "brier")
"""Those of them that the task has are summarised."""


@dataclass(frozen=True)
class Member:
    """One fold or one seed."""

    folder: Path
    recipe: Recipe

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """Its numbers, once it is done."""
        try:
            return read_result(self.folder / EVALUATION)
        except (OSError, LangevinError):  # none, or not a whole one: it is evaluated again
            return None

    @property
    def share(self) -> float:
        """How much of its training is done, by its last checkpoint."""
        progress = RunFolder(self.folder).progress() if (self.folder / RECIPE).is_file() else None
        return 0.0 if not progress else 1.0 if progress.finished else progress.step / progress.total

    def log(self) -> str:
        path = self.folder.with_suffix(".log")
        return path.read_text(errors="replace").strip() if path.is_file() else ""


Watch = Callable[[int, int, dict[str, float]], None]
"""Told now and then how many members are done, of how many, and the share of training done of those
at work."""


def cross_validate(
    recipe: Recipe, out: Path, *, folds: int | None = None, runs: int = 10, jobs: int | None = None,
    forget_samples: bool = False, watch: Watch = lambda done, total, working: None,
    engine: Engine = run_side_by_side,
) -> dict[str, Any]:
    """Train and evaluate what is not there yet, and summarise: mean and standard deviation over the
    members.

    `folds`: so many of the recipe's folds, the first ones (None: all). `runs`: so many seeds, from
    0, where the corpus has a test split. `jobs`: processes at a time (None: as many as `engine` has
    room for). `forget_samples`: delete the samples of a member once it is evaluated. Raises
    Interrupted when stopped by Ctrl-C or SIGTERM, the children being stopped.
    """
    members = plan(recipe, out, folds, runs)
    check_members(members)
    waiting = [member for member in members if member.evaluation is None]
    if waiting:
        open_task(waiting[0].recipe)  # what is wrong with the data is said here, once
        run_all(waiting, members, jobs, forget_samples, watch, engine)
    failed = [member for member in members if member.evaluation is None]
    summary = summarise(recipe, [member for member in members if member not in failed], failed)
    write_json(out / SUMMARY, summary)
    if failed:
        last = failed[0].log().splitlines()[-1:] or ["it was killed"]
        raise LangevinError(f"{', '.join(m.name for m in failed)} of {len(members)} did not end well: {last[0]}; see "
                            f"{failed[0].folder.with_suffix('.log')}. The others are kept; the same command goes on")
    return summary


def has_test_split(recipe: Recipe) -> bool:
    """Whether the test sentences are given, so that seeds are repeated instead of folds."""
    data = recipe.data
    if not isinstance(data, SentenceData):
        return True
    return data.test_file is not None or (data.corpus in DATASETS and "test" in DATASETS[data.corpus].files)


def plan(recipe: Recipe, out: Path, folds: int | None, runs: int) -> list[Member]:
    """The members with their recipes: fold k of the data, or seed k; one thread each."""
    if has_test_split(recipe):
        if folds is not None:
            raise LangevinError(f"{recipe.data.corpus} has a test split of its own, got folds {folds}; use --runs")
        settings = [{"seed": number, "threads": 1} for number in range(runs)]
        return [
            Member(out / f"run-{k}", recipe.model_copy(update={"run": recipe.run.model_copy(update=changed)}))
            for k, changed in enumerate(settings)
        ]
    data, run = recipe.data, recipe.run.model_copy(update={"threads": 1})
    assert isinstance(data, SentenceData)
    count = data.folds if folds is None else folds
    if not 1 <= count <= data.folds:
        raise LangevinError(f"expected between 1 and {data.folds} folds, the recipe's, got {count}; set data.folds")
    return [
        Member(out / f"fold-{k}", recipe.model_copy(update={"data": data.model_copy(update={"fold": k}), "run": run}))
        for k in range(count)
    ]


def check_members(members: list[Member]) -> None:
    """Refuse to mix two recipes in one folder."""
    for member in members:
        if (member.folder / RECIPE).is_file():
            there = RunFolder(member.folder).recipe
            refuse_other(there.what_is_computed(), member.recipe.what_is_computed(), member.folder)


def run_all(
    waiting: list[Member], members: list[Member], at_once: int | None, forget: bool, watch: Watch, engine: Engine
) -> None:
    """Keep so many children at work until none is left; one that fails does not stop the others."""

    def look() -> None:
        evaluated = [member.evaluation is not None for member in members]
        shares = {m.name: m.share for m, done in zip(members, evaluated, strict=True) if not done and m.share}
        watch(sum(evaluated), len(members), shares)

    try:
        engine([job_of(member, forget) for member in waiting], at_once, look, keep_going=True)
    except KeyboardInterrupt:
        raise Interrupted from None


def job_of(member: Member, forget: bool) -> Job:
    """A process that trains and evaluates one member, and says what it has to say in a file beside
    it."""
    recipe, log = member.folder.with_suffix(".toml"), member.folder.with_suffix(".log")
    write_atomic(recipe, member.recipe.to_toml().encode())
    log.unlink(missing_ok=True)
    return Job(member.name, command(recipe, member.folder, member.folder / EVALUATION, forget_samples=forget),
               log.absolute())


def summarise(recipe: Recipe, done: list[Member], failed: list[Member]) -> dict[str, Any]:
    """Mean and standard deviation (over n−1) of the test metrics over the members."""
    numbers = {member.name: member.evaluation or {} for member in done}
    kinds = ("single", "averaged")
    names = [name for name in METRICS if all(name in n["test"]["averaged"] for n in numbers.values())]
    return {
        "title": recipe.title, "recipe": recipe.what_is_computed(), "count": len(done),
        "over": "seeds" if has_test_split(recipe) else "folds", "failed": [member.name for member in failed],
        "summary": {
            kind: {name: spread([n["test"][kind][name] for n in numbers.values()]) for name in names} for kind in kinds
        },
        "chosen": spread([n["chosen"]["test"] for n in numbers.values()]),
        "members": {
            name: {**{key: n[key] for key in ("temperature", "samples", "minutes", "steps", "chosen")},
                   **{kind: n["test"][kind] for kind in kinds}}
            for name, n in numbers.items()
        },
    }


def spread(values: list[float]) -> dict[str, float | None]:
    """Mean and standard deviation; None where there are too few values."""
    return {"mean": statistics.fmean(values) if values else None,
            "std": statistics.stdev(values) if len(values) > 1 else None}
