"""Run what is missing of a target, go on with what was cut off, record what is finished."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..chains import resume_chains, start_chains
from ..errors import LangevinError
from ..recipe import load_recipe
from ..recipe.load import validate
from ..runfolder import RECIPE, RunFolder, write_json
from ..side_by_side import Job, abandoned, run_side_by_side
from ..startup import prepare_process
from ..train import Interrupted
from ..workflow import resume, start, train_until_done
from .record import record
from .targets import Run, Target, minutes_of


def state(run: Run, out: Path, results: Path) -> float:
    """Share of a run that is done: 1 when its numbers are recorded, less while its folder holds a part."""
    if (results / f"{run.name}.json").is_file():
        return 1.0
    if not (out / run.name / RECIPE).is_file():
        return 0.0
    progress = RunFolder(out / run.name).progress()
    return 0.99 * progress["step"] / progress["total"] if progress else 0.0


def overview(target: Target, out: Path, results: Path, seeds: int | None = None) -> dict[str, Any]:
    """How far a target is with so many runs of each cell (None: as many as in the paper), and minutes left."""
    runs = target.runs(seeds=seeds or target.folds or 1)
    shares = [state(run, out, results) for run in runs]
    done = sum(share == 1 for share in shares)
    words = "done" if done == len(shares) else "partly" if any(shares) else "not run"
    left = sum((1 - share) * minutes_of(run.cell) for run, share in zip(runs, shares, strict=True))
    return {"target": target.name, "title": target.title, "state": words, "recorded": done, "runs": len(shares),
            "minutes_left": round(left)}


def refuse_other_recipes(runs: Sequence[Run], out: Path, results: Path, overrides: Sequence[str] = ()) -> None:
    """What is recorded or begun under the name of a run must be of its recipe as it stands.

    Recorded numbers may be of another precision, which the tables tell; a run that goes on may not.
    """
    for run in runs:
        recorded, folder = results / f"{run.name}.json", out / run.name
        wanted = load_recipe(run.recipe, [*overrides, *run.overrides]).what_is_computed()
        if recorded.is_file():
            where, there = recorded, validate(json.loads(recorded.read_text())["recipe"]).what_is_computed()
            wanted["run"]["precision"] = there["run"]["precision"]
        elif (folder / RECIPE).is_file():
            where, there = folder, RunFolder(folder).recipe.what_is_computed()
        else:
            continue
        for table in ("data", "model", "sampler", "run"):
            for key, value in wanted[table].items():
                if there[table].get(key) != value:
                    raise LangevinError(f"expected {table}.{key} = {value} in {where}, got {there[table].get(key)}: it "
                                        f"is of another recipe; move it away to run this one anew")


def execute(
    runs: Sequence[Run], out: Path, results: Path, at_once: int, on_end: Callable[[str], None] = lambda name: None,
    overrides: Sequence[str] = (),
) -> None:
    """All runs that are not recorded yet, `at_once` at a time, one thread each; `overrides` hold for all of them."""
    missing = [run for run in runs if state(run, out, results) < 1]
    jobs = [
        Job(run.name, command(run.recipe, out / run.name, results / f"{run.name}.json", (*overrides, *run.overrides),
                              chains=run.chains), out / f"{run.name}.log")
        for run in missing
    ]
    run_side_by_side(jobs, at_once, on_end=lambda job: on_end(job.name))


def command(
    recipe: str | Path, folder: Path, result: Path, overrides: Sequence[str] = (), *, forget_samples: bool = False,
    chains: int = 1,
) -> list[str]:
    """This file as a program: train or resume one run on one thread, and record it."""
    told = {"recipe": str(recipe), "folder": str(folder), "result": str(result), "overrides": list(overrides),
            "forget_samples": forget_samples, "chains": chains}
    return [sys.executable, "-P", "-m", "langevin.reproduce.runs", json.dumps(told)]


def train_and_record(
    recipe: str, folder: str, result: str, overrides: list[str], forget_samples: bool, chains: int
) -> None:
    """Train or go on, evaluate, keep the numbers; then, if asked to, drop the samples."""
    prepare_process()
    path = Path(folder)
    begun = (path / RECIPE).is_file()
    wanted = None if begun else load_recipe(recipe, [*overrides, "threads=1"])
    if chains > 1:
        resume_chains(RunFolder(path) if wanted is None else start_chains(wanted, path, chains), 1, stop_if_abandoned)
    else:
        trainer = resume(path) if wanted is None else start(wanted, path)
        if not trainer.finished:
            train_until_done(trainer, lambda _: None)
    Path(result).parent.mkdir(parents=True, exist_ok=True)
    write_json(Path(result), record(path))
    if forget_samples:
        RunFolder(path).store().forget_after(0)


def stop_if_abandoned() -> None:
    if abandoned():
        raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        train_and_record(**json.loads(sys.argv[1]))
    except (Interrupted, KeyboardInterrupt):
        sys.exit(130)
    except LangevinError as error:
        print(f"langevin: {error}", flush=True)
        sys.exit(2)
