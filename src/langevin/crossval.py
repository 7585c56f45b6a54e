"""One recipe on several folds, or with several seeds where the test split is given; side by side, resumable.

Each member is an ordinary run folder below one folder, trained by a process of its own on one thread and evaluated
there (`evaluation.json`, as `langevin record` writes it). A member that has its evaluation is done; one that has not
goes on from its checkpoint. So killing anything at any time loses at most a minute.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .data.datasets import DATASETS
from .errors import LangevinError
from .files import write_atomic
from .recipe import Recipe, SentenceData, load_recipe
from .reproduce.record import record
from .runfolder import RECIPE, RunFolder, write_json
from .startup import prepare_process
from .tasks import open_task
from .train import Interrupted, Trainer
from .workflow import resume, start, train_until_done

EVALUATION, SUMMARY = "evaluation.json", "crossval.json"
METRICS = ("error", "nll", "ece", "brier")
"""Those of them that the task has are summarised."""
CHILD = "from langevin.crossval import train_member; train_member()"


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
        path = self.folder / EVALUATION
        return json.loads(path.read_text()) if path.is_file() else None

    @property
    def share(self) -> float:
        """How much of its training is done, by its last checkpoint."""
        progress = RunFolder(self.folder).progress() if (self.folder / RECIPE).is_file() else None
        return 0.0 if not progress else 1.0 if progress["finished"] else progress["step"] / progress["total"]

    def log(self) -> str:
        path = self.folder.with_suffix(".log")
        return path.read_text(errors="replace").strip() if path.is_file() else ""


Watch = Callable[[int, int, dict[str, float]], None]
"""Told now and then how many members are done, of how many, and the share of training done of those at work."""


def cross_validate(
    recipe: Recipe, out: Path, *, folds: int | None = None, runs: int = 10, jobs: int | None = None,
    forget_samples: bool = False, watch: Watch = lambda done, total, working: None,
) -> dict[str, Any]:
    """Train and evaluate what is not there yet, and summarise: mean and standard deviation over the members.

    `folds`: so many of the recipe's folds, the first ones (None: all). `runs`: so many seeds, from 0, where the corpus
    has a test split. `jobs`: processes at a time (None: one for each core). `forget_samples`: delete the samples of a
    member once it is evaluated. Raises Interrupted when stopped by Ctrl-C or SIGTERM, the children being stopped.
    """
    members = plan(recipe, out, folds, runs)
    check_members(members)
    waiting = [member for member in members if member.evaluation is None]
    if waiting:
        open_task(waiting[0].recipe)  # what is wrong with the data is said here, once
        run_all(waiting, members, jobs or os.cpu_count() or 1, forget_samples, watch)
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
            if there.what_is_computed() != member.recipe.what_is_computed():
                raise LangevinError(f"{member.folder} holds a run of another recipe; choose another --out or remove it")


def run_all(waiting: list[Member], members: list[Member], jobs: int, forget: bool, watch: Watch) -> None:
    """Keep `jobs` children at work until none is left; stop them all when asked to."""
    queue, working = list(waiting), dict[str, tuple[Member, subprocess.Popen[bytes]]]()
    with stoppable():
        try:
            while queue or working:
                while queue and len(working) < jobs:
                    member = queue.pop(0)
                    working[member.name] = member, spawn(member, forget)
                time.sleep(0.5)
                working = {name: pair for name, pair in working.items() if pair[1].poll() is None}
                at_work = {name: member.share for name, (member, _) in working.items()}
                done = sum((member.folder / EVALUATION).is_file() for member in members)
                watch(done, len(members), at_work)
        except KeyboardInterrupt:
            raise Interrupted from None
        finally:
            stop([process for _, process in working.values()])


def spawn(member: Member, forget: bool) -> subprocess.Popen[bytes]:
    """A child for one member. It has a session of its own: Ctrl-C reaches it through us alone, and once."""
    recipe = member.folder.with_suffix(".toml")
    write_atomic(recipe, member.recipe.to_toml().encode())
    command = [sys.executable, "-c", CHILD, str(recipe), str(member.folder), str(os.getpid()), str(int(forget))]
    with member.folder.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask all children to end (they write a checkpoint) and wait for them."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM counts as Ctrl-C, so that the children are stopped too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def train_member() -> None:
    """What a child does: train or go on, evaluate, keep the numbers. Ends by itself when its parent is gone."""
    recipe, folder, parent, forget = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1"
    prepare_process()

    def leave_with_parent(_: Trainer) -> None:
        if os.getppid() != parent:
            signal.raise_signal(signal.SIGTERM)

    try:
        begun = (folder / RECIPE).is_file()
        trainer = resume(folder) if begun else start(load_recipe(recipe), folder)
        if not trainer.finished:
            train_until_done(trainer, leave_with_parent)
        write_json(folder / EVALUATION, record(folder))
        if forget:
            trainer.store.forget_after(0)
    except Interrupted:
        sys.exit(130)
    except LangevinError as error:
        print(f"langevin: {error}", flush=True)
        sys.exit(2)


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
            name: {"samples": n["samples"], "minutes": n["minutes"], "steps": n["steps"], "chosen": n["chosen"],
                   **{kind: n["test"][kind] for kind in kinds}}
            for name, n in numbers.items()
        },
    }


def spread(values: list[float]) -> dict[str, float | None]:
    """Mean and standard deviation; None where there are too few values."""
    return {"mean": statistics.fmean(values) if values else None,
            "std": statistics.stdev(values) if len(values) > 1 else None}
