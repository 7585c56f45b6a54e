"""Commands around the paper's tables and figures: reproduce, record, tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from langevin.cli.app import Folder, Json, On, Overwrite
from langevin.errors import LangevinError
from langevin.files import write_atomic
from langevin.report.progress import Bars
from langevin.report.terminal import messages, screen, table
from langevin.store.records import write_json
from langevin.training.engines import LOCAL, open_engine

from .figures import FIGURES, draw_figure, is_drawn, kept_numbers
from .markdown import rendered
from .numbers import Recorded, load, read_result
from .pages import body_of, claims_of, columns_of, not_run, page
from .questions import COMPARED
from .scores import refresh
from .record import record as record_run
from .runs import (
    execute,
    execute_benchmarks,
    missing_benchmarks,
    missing_runs,
    overview,
    refuse_other_recipes,
)
from .scoreboard import refresh_findings
from .tables import (
    ablation_rows,
    alternative_rows,
    cell_rows,
    claims,
    column_rows,
    time_rows,
)
from .targets import CORE, TARGETS, Run, Target, target_named

QUICK = " (QUICK: tiny models, the numbers mean nothing)"


def reproduce(
    target: Annotated[str | None, typer.Argument(help="a table or figure; none: list them with their state")] = None,
    cells: Annotated[
        str | None, typer.Option(help="run only these cells: names or patterns like 'trec-*', separated by commas")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="minutes instead of hours; the numbers mean nothing")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="runs of each cell: seeds, or folds (default: as many as in the paper)")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs side by side, one thread each")] = None,
    on: On = LOCAL,
    out: Annotated[Path, typer.Option(help="folder of the runs")] = Path("runs/reproduce"),
    results: Annotated[Path | None, typer.Option(help="folder of recorded numbers (default: results)")] = None,
    precision: Annotated[
        Literal["float32", "bfloat16"] | None,
        typer.Option(help="of the products in training (default: as begun or recorded)"),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="show what is there, run nothing")] = False,
    as_json: Json = False,
) -> None:
    """Run what is missing of a table or figure of the paper, and print it with the paper's
    numbers."""
    out, results = folders(out, results, quick=quick)
    if target is None:
        refuse_without_target(precision, cells)
        show_targets(out, results, seeds, quick, as_json)
        return
    chosen = target_named(target)
    asked = named_cells(chosen, cells)
    runs = chosen.runs(asked, seeds or chosen.usual_seeds(quick=quick), quick)
    failed: dict[str, str] = {}
    if not dry:
        if not quick:  # quick versions of several targets share what they ran
            refuse_other_recipes(runs, out, results, precision)
        make_folder(results)
        wanted = [] if quick else missing_benchmarks(chosen, results)
        missing = missing_runs(chosen, runs, out, results)
        failed = run_missing(missing, out, results, jobs, on, precision, quick, as_json)
        if wanted and not (failed or asked):
            failed = measure_missing(chosen, out, results, precision, as_json)
        if chosen.name in FIGURES and not failed:
            messages.print(f"drawn: {draw_figure(chosen.name, out, results, quick=quick)}", soft_wrap=True)
    show_target(chosen, results, quick, as_json)
    say_failed(failed)


def folders(out: Path, results: Path | None, *, quick: bool) -> tuple[Path, Path]:
    """Of the runs and of the recorded numbers; quick ones have a folder of their own."""
    if quick and results is not None:
        raise LangevinError(f"quick numbers are kept with their runs, got --results {results}; leave it out")
    out = out.with_name(f"{out.name}-quick") if quick else out
    results = out if quick else results or Path("results")
    if results.exists() and not results.is_dir():
        raise LangevinError(f"expected a folder of recorded numbers at {results}, got a file; name another --results")
    return out, results


def refuse_without_target(precision: str | None, cells: str | None) -> None:
    """What means nothing for the list of targets."""
    if precision is not None:
        raise LangevinError(f"the list of targets has no precision, got --precision {precision}; name a target")
    if cells is not None:
        raise LangevinError(f"cells are those of a target, got --cells {cells!r} without one; name it, e.g. "
                            f"'python -m paper sentences --cells {cells!r}'")


def named_cells(target: Target, cells: str | None) -> tuple[str, ...]:
    """The names or patterns that were asked for; none: all cells."""
    asked = tuple(filter(None, (cell.strip() for cell in (cells or "").split(","))))
    if cells is not None and not asked:
        raise LangevinError(f"expected names of cells, got --cells {cells!r}; choose from {', '.join(target.cells)}, "
                            f"or leave it out to run all")
    return asked


def say_failed(failed: dict[str, str]) -> None:
    for name, why in failed.items():
        messages.print(f"{name} failed: {why}", style="red", soft_wrap=True)
    if failed:
        raise typer.Exit(2)


def make_folder(results: Path) -> None:
    """Before hours of training, not after."""
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise LangevinError(f"expected a folder for the numbers at {results}, which cannot be made "
                            f"({problem.strerror}); name another --results") from None


def run_missing(
    missing: list[Run], out: Path, results: Path, jobs: int | None, on: str, precision: str | None, quick: bool,
    quiet: bool,
) -> dict[str, str]:
    """Train and record; those that failed, with their last words."""
    if not missing:
        return {}
    with open_engine(on, [out, results]) as engine, Bars(quiet) as progress:
        advance = progress.begin(len(missing), "runs")
        try:
            return execute(missing, out, results, jobs, lambda name: advance(), precision=precision, quick=quick,
                           engine=engine)
        except KeyboardInterrupt:
            messages.print("stopped; the same command goes on where it was")
            raise typer.Exit(130) from None


def measure_missing(
    target: Target, out: Path, results: Path, precision: str | None, quiet: bool
) -> dict[str, str]:
    """Times, once nothing else runs; what failed, with its last words."""
    with Bars(quiet) as progress:
        advance = progress.begin(len(missing_benchmarks(target, results)), "benchmarks")
        return execute_benchmarks(target, out, results, lambda name: advance(), precision=precision)


def show_targets(out: Path, results: Path, seeds: int | None, quick: bool, as_json: bool) -> None:
    listed = [overview(target, out, results, seeds, quick=quick) for target in TARGETS.values()]
    if as_json:
        print(json.dumps(listed))
        return
    lines = [
        (o["target"], o["state"], f"{o['recorded']} of {o['runs']}",
         *([] if quick else [f"{about(o['minutes_left'])} of {about(o['minutes'])}"]), in_brief(o["title"]))
        for o in listed
    ]
    columns = ("target", "state", "runs made", *([] if quick else ["minutes left"]), "what")
    title = QUICK if quick else f", minutes of {CORE}"
    screen.print(table(f"targets{title}", columns, lines, words=True, named=True))


def about(minutes: float) -> str:
    """Two digits: more cannot be foretold."""
    return f"{float(f'{minutes:.2g}'):.0f}"


def in_brief(title: str) -> str:
    """Without what is measured and other details, for a list."""
    return title.partition(", test")[0].partition(" (")[0]


def show_target(target: Target, results: Path, quick: bool, as_json: bool) -> None:
    recorded = load(results, target)
    if as_json:
        drawn = read_result(kept_numbers(target.name, results)) if is_drawn(target.name, results) else None
        told = {"target": target.name, "quick": quick, "rows": rows_of(target, recorded), "figure": drawn,
                "columns": column_rows(target, recorded), "claims": claims(target, recorded)}
        print(json.dumps(told, default=vars))
        return
    parts = [f"{target.title}{QUICK if quick else ''}"]
    if target.figure:
        picture = kept_numbers(target.name, results).with_suffix(".quick.png" if quick else ".png")
        parts.append(f"See {picture}" if picture.is_file() else f"Not drawn yet: 'python -m paper {target.name}'")
    else:
        parts += [body_of(target, recorded), not_run(target, recorded, quick=quick), columns_of(target, recorded),
                  claims_of(target, recorded)]
    text = "\n\n".join(filter(None, parts))
    if sys.stdout.isatty():
        screen.print(rendered(text, screen.width))
    else:  # to a file or another program: Markdown as it stands
        screen.print(Text(text), soft_wrap=True)


def rows_of(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """The numbers of its table, in the form that it has."""
    special = {"ablation": ablation_rows, "time": time_rows}.get(target.name)
    if special:
        return special(recorded)
    return (alternative_rows if target.name in COMPARED else cell_rows)(target, recorded)


def record(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="the JSON file to write")],
    overwrite: Overwrite = False,
) -> None:
    """Evaluate a finished run on validation and test, every collection, and keep the numbers."""
    if out.exists() and not overwrite:
        raise LangevinError(f"{out} exists; choose another --out or allow --overwrite")
    with Bars() as progress:
        write_json(out, record_run(folder, progress))


def tables(
    scores: Annotated[Path, typer.Option(help="the page of samplers and twins to refresh")] = Path("docs/results.md"),
    docs: Annotated[Path, typer.Option(help="the page of all tables")] = Path("docs/reproduce.md"),
    findings: Annotated[Path, typer.Option(help="the page of claims to refresh")] = Path("docs/findings.md"),
    results: Annotated[Path, typer.Option(help="folder of recorded numbers")] = Path("results"),
) -> None:
    """Make the tables of docs/results.md, docs/findings.md and docs/reproduce.md anew from the
    recorded numbers."""
    there = {path: page_at(path) for path in (scores, findings)}
    if not any(load(results, target) for target in TARGETS.values()):
        raise LangevinError(f"expected recorded numbers in the folder {results}, got none; name another --results")
    made = {scores: refresh(there[scores], results, scores), docs: page(results),
            findings: refresh_findings(there[findings], results, findings)}
    for path, text in made.items():
        write_atomic(path, text.encode())


def page_at(path: Path) -> str:
    """A page that is to be refreshed."""
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "not UTF-8"
        raise LangevinError(f"expected a page to refresh at {path}, got none ({why}); run this where docs/ "
                            f"is, or name them") from None
