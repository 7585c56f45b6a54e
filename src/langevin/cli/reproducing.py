"""Commands around the paper's tables and figures: reproduce, record, tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from ..errors import LangevinError
from ..files import write_atomic
from ..report.terminal import counting, messages, screen, table
from ..reproduce.figures import FIGURES, draw_figure
from ..reproduce.pages import body_of, claims_of, page, refresh
from ..reproduce.questions import COMPARED
from ..reproduce.record import record as record_run
from ..reproduce.runs import execute, overview, refuse_other_recipes, state
from ..reproduce.tables import Recorded, ablation_rows, alternative_rows, cell_rows, claims, load, time_rows
from ..reproduce.targets import TARGETS, Target, target_named
from ..runfolder import write_json
from ..startup import available_cores
from .app import Folder, Json, Overwrite, app

Results = Annotated[Path, typer.Option(help="folder of recorded numbers")]


@app.command()
def reproduce(
    target: Annotated[str | None, typer.Argument(help="a table or figure; none: list them with their state")] = None,
    cells: Annotated[
        str | None, typer.Option(help="only these cells: names or patterns like 'trec-*', separated by commas")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="minutes instead of hours; the numbers mean nothing")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="runs of each cell (default: 1): seeds, or folds where the paper has them")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs side by side, one thread each")] = None,
    out: Annotated[Path, typer.Option(help="folder of the runs")] = Path("runs/reproduce"),
    results: Results = Path("results"),
    precision: Annotated[
        Literal["float32", "bfloat16"] | None, typer.Option(help="of the products in training; None: the recipe's")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="show what is there, run nothing")] = False,
    as_json: Json = False,
) -> None:
    """Run what is missing of a table or figure of the paper, and print it with the paper's numbers."""
    if quick:
        out = results = out.with_name(f"{out.name}-quick")
    if target is None:
        show_targets(out, results, seeds, as_json)
        return
    chosen = target_named(target)
    runs = chosen.runs(tuple(filter(None, (cells or "").split(","))), seeds or 1, quick)
    missing = [run for run in runs if state(run, out, results) < 1]
    overrides = [f"precision={precision}"] if precision else []
    if not dry and not quick:  # quick versions of several targets share what they ran
        refuse_other_recipes(runs, out, results, overrides)
    if missing and not dry:
        with counting("runs", as_json) as begin:
            advance = begin(len(missing))
            try:
                execute(missing, out, results, jobs or available_cores(), lambda name: advance(), overrides)
            except KeyboardInterrupt:
                messages.print(f"stopped; 'langevin reproduce {target}' goes on where it was")
                raise typer.Exit(130) from None
    if chosen.name in FIGURES and not dry:
        path = draw_figure(chosen.name, out, results, out / f"{chosen.name}.png")
        messages.print(f"drawn: {path}", soft_wrap=True)
    show_target(chosen, results, quick, as_json)


def show_targets(out: Path, results: Path, seeds: int | None, as_json: bool) -> None:
    listed = [overview(target, out, results, seeds) for target in TARGETS.values()]
    if as_json:
        print(json.dumps(listed))
        return
    lines = [
        (o["target"], o["title"], o["state"], f"{o['recorded']} of {o['runs']}", str(o["minutes_left"])) for o in listed
    ]
    screen.print(table("targets", ("target", "what", "state", "runs", "minutes left, one core"), lines, words=True))


def show_target(target: Target, results: Path, quick: bool, as_json: bool) -> None:
    recorded = load(results, target)
    if as_json:
        told = {"target": target.name, "quick": quick, "rows": rows_of(target, recorded),
                "claims": claims(target, recorded)}
        print(json.dumps(told, default=vars))
        return
    body = "" if target.figure else body_of(target, recorded)
    label = " (QUICK: tiny models, the numbers mean nothing)" if quick else ""
    screen.print(Text(f"{target.title}{label}\n\n{body}\n\n{claims_of(target, recorded)}"))


def rows_of(target: Target, recorded: Recorded) -> list[dict[str, Any]]:
    """The numbers of its table, in the form that it has."""
    special = {"ablation": ablation_rows, "time": time_rows}.get(target.name)
    if special:
        return special(recorded)
    return (alternative_rows if target.name in COMPARED else cell_rows)(target, recorded)


@app.command()
def record(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="the JSON file to write")],
    overwrite: Overwrite = False,
) -> None:
    """Evaluate a finished run on validation and test, every collection, and keep the numbers."""
    if out.exists() and not overwrite:
        raise LangevinError(f"{out} exists; choose another --out or allow --overwrite")
    with counting("samples") as begin:
        write_json(out, record_run(folder, begin))


@app.command()
def tables(
    readme: Annotated[Path, typer.Option(help="the page to refresh")] = Path("README.md"),
    docs: Annotated[Path, typer.Option(help="the page of all tables")] = Path("docs/reproduce.md"),
    results: Results = Path("results"),
) -> None:
    """Make the tables of results in the README and in docs/reproduce.md anew from the recorded numbers."""
    write_atomic(readme, refresh(readme.read_text(), results).encode())
    write_atomic(docs, page(results).encode())
