"""Run what is missing of a target, go on with what was cut off, record what is finished."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langevin.data.catalogue import DATASETS, data_folder
from langevin.errors import LangevinError
from langevin.process import prepare_process
from langevin.recipe import load_recipe
from langevin.recipe.load import validate
from langevin.store.folder import RECIPE, RunFolder
from langevin.store.records import write_json
from langevin.store.writer import RunWriter
from langevin.training.chains import resume_chains, start_chains
from langevin.training.engines import Engine
from langevin.training.jobs import Job, abandoned, end_with_parent, last_lines, run_side_by_side
from langevin.errors import Interrupted
from langevin.training.session import resume, start, train_until_done

from .figures import is_drawn
from .numbers import read_result
from .precision import HALF, precision_of
from .record import record
from .targets import Run, Target, minutes_of


def state(run: Run, out: Path, results: Path, *, folder_needed: bool = False) -> float:
    """Share of a run that is done: 1 when its numbers are recorded, less while its folder holds a
    part.

    A figure needs the folder itself, finished; recorded numbers are not enough then.
    """
    if not folder_needed and (results / f"{run.name}.json").is_file():
        return 1.0
    if not (out / run.name / RECIPE).is_file():
        return 0.0
    progress = RunFolder(out / run.name).progress()
    if folder_needed and progress and progress.finished:
        return 1.0
    return 0.99 * progress.step / progress.total if progress else 0.0


def missing_runs(target: Target, runs: Sequence[Run], out: Path, results: Path) -> list[Run]:
    """Those that must be trained, or trained on, before the target can be shown."""
    if is_drawn(target.name, results):
        return []
    timed = {target.benchmarks[name].needs for name in missing_benchmarks(target, results)}
    return [
        run for run in runs
        if state(run, out, results, folder_needed=target.needs_folders or (not run.key and run.cell in timed)) < 1
    ]


def absent_data(run: Run) -> list[str]:
    """The data sets that a run needs and that are not there."""
    data = load_recipe(run.recipe, run.overrides).data
    needed = (data.corpus, getattr(data, "vectors", None))
    return [name for name in needed if name in DATASETS and not DATASETS[name].is_there()]


def missing_benchmarks(target: Target, results: Path) -> list[str]:
    return [name for name in target.benchmarks if not (results / f"{name}.json").is_file()]


def overview(
    target: Target, out: Path, results: Path, seeds: int | None = None, *, quick: bool = False
) -> dict[str, Any]:
    """How far a target is with so many runs of each cell (None: as many as in the paper), and
    minutes of one core."""
    runs = target.runs(seeds=seeds or target.usual_seeds(quick=quick), quick=quick)
    drawn = is_drawn(target.name, results)
    shares = [1.0 if drawn else state(run, out, results, folder_needed=target.needs_folders) for run in runs]
    benchmarks = {} if quick else target.benchmarks
    shares += [float(name not in missing_benchmarks(target, results)) for name in benchmarks]
    done = sum(share == 1 for share in shares)
    words = "done" if done == len(shares) else "partly" if any(shares) else "not run"
    if words == "not run" and all(map(absent_data, runs)):
        words = "no data"
    prices = {cell: 0.0 if quick else minutes_of(cell) for cell in target.cells}
    minutes = [*(prices[run.cell] for run in runs), *(benchmark.minutes for benchmark in benchmarks.values())]
    left = sum((1 - share) * each for each, share in zip(minutes, shares, strict=True))
    return {"target": target.name, "title": target.title, "state": words, "recorded": done, "runs": len(shares),
            "minutes": round(sum(minutes)), "minutes_left": round(left), "quick": quick}


def settings_of(run: Run, out: Path, results: Path, asked: str | None = None) -> tuple[str, ...]:
    """The overrides of a run, its precision among them where it is not the recipe's."""
    precision = precision_of(run, out, results, asked)
    return (*([f"precision={precision}"] if precision else []), *run.overrides)


def refuse_other_recipes(runs: Sequence[Run], out: Path, results: Path, precision: str | None = None) -> None:
    """What is recorded or begun under the name of a run must be of its recipe as it stands.

    Recorded numbers may be of another precision, which the tables tell; a run that goes on may not.
    """
    for run in runs:
        recorded, folder = results / f"{run.name}.json", out / run.name
        wanted = load_recipe(run.recipe, settings_of(run, out, results, precision)).what_is_computed()
        if recorded.is_file():
            there = validate(read_result(recorded)["recipe"]).what_is_computed()
            refuse_other(there, wanted | {"run": wanted["run"] | {"precision": there["run"]["precision"]}}, recorded)
        if (folder / RECIPE).is_file():
            refuse_other(RunFolder(folder).recipe.what_is_computed(), wanted, folder)


def refuse_other(there: dict[str, Any], wanted: dict[str, Any], where: Path) -> None:
    for table in ("data", "model", "sampler", "run"):
        for key, value in wanted[table].items():
            if there[table].get(key) != value:
                raise LangevinError(f"expected {table}.{key} = {value} in {where}, got {there[table].get(key)}: it is "
                                    f"of another recipe; move it away to run this one anew")


def execute(
    missing: Sequence[Run], out: Path, results: Path, at_once: int | None,
    on_end: Callable[[str], None] = lambda name: None, *, precision: str | None = None, quick: bool = False,
    engine: Engine = run_side_by_side,
) -> dict[str, str]:
    """Train and record these runs, `at_once` at a time, one thread each; those that failed, with
    their last words.

    A run that is recorded but has lost its folder is trained again, and its new numbers stay beside
    the folder.
    """
    jobs, failed = [], dict[str, str]()
    for run in missing:
        if absent := absent_data(run):
            failed[run.name] = f"it needs {' and '.join(absent)}, not found in {data_folder()}; see 'langevin data'"
            on_end(run.name)
            continue
        result = results / f"{run.name}.json"
        result = out / result.name if result.is_file() else result
        told = command(run.recipe, out / run.name, result, settings_of(run, out, results, precision),
                       chains=run.chains, quick=quick)
        jobs.append(Job(run.name, told, out.absolute() / f"{run.name}.log"))
    return failed | side_by_side(engine, jobs, at_once, on_end)


def execute_benchmarks(
    target: Target, out: Path, results: Path, on_end: Callable[[str], None] = lambda name: None,
    *, precision: str | None = None,
) -> dict[str, str]:
    """Measure the times that are missing, one after another; those that failed, with their last
    words."""
    if not Path("benchmarks").is_dir():
        where = "it is in the source tree, not in the package; give the command there"
        return dict.fromkeys(missing_benchmarks(target, results), where)
    precision = precision or HALF
    jobs = [
        Job(name, [sys.executable, *target.benchmarks[name].words(str(results / f"{name}.json"), str(out), precision)],
            out / f"{name}.log")
        for name in missing_benchmarks(target, results)
    ]
    return side_by_side(run_side_by_side, jobs, 1, on_end)


def side_by_side(
    engine: Engine, jobs: Sequence[Job], at_once: int | None, on_end: Callable[[str], None]
) -> dict[str, str]:
    """All of them, whether or not some fail; the last words of those."""
    failed: dict[str, str] = {}

    def ended(job: Job, code: int) -> None:
        if code:
            failed[job.name] = last_lines(job)
        on_end(job.name)

    engine(jobs, at_once, on_end=ended, keep_going=True)
    return failed


def command(
    recipe: str | Path, folder: Path, result: Path, overrides: Sequence[str] = (), *, forget_samples: bool = False,
    chains: int = 1, quick: bool = False,
) -> list[str]:
    """This file as a program, wherever it is begun: train or resume one run on one thread, and
    record it."""
    recipe = recipe.absolute() if isinstance(recipe, Path) else recipe
    told = {"recipe": str(recipe), "folder": str(folder.absolute()), "result": str(result.absolute()),
            "overrides": list(overrides), "forget_samples": forget_samples, "chains": chains, "quick": quick}
    return [sys.executable, "-P", "-m", "paper.runs", json.dumps(told)]


def train_and_record(
    recipe: str, folder: str, result: str, overrides: list[str], forget_samples: bool, chains: int, quick: bool
) -> None:
    """Train or go on, evaluate, keep the numbers (marked where they mean nothing); then, if asked
    to, drop the samples.
    """
    end_with_parent()
    prepare_process()
    path = Path(folder)
    wanted = None if (path / RECIPE).is_file() else load_recipe(recipe, [*overrides, "threads=1"])
    if chains > 1:
        resume_chains(start_chains(wanted, path, chains) if wanted else RunFolder(path), 1, stop_if_abandoned)
    else:
        trainer = start(wanted, path) if wanted else resume(path)
        if not trainer.finished:
            train_until_done(trainer, lambda _: None)
    Path(result).parent.mkdir(parents=True, exist_ok=True)
    write_json(Path(result), record(path) | ({"quick": True} if quick else {}))
    if forget_samples:
        RunWriter(RunFolder(path)).forget()


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
