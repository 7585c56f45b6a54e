"""The command that repeats a recipe over folds or seeds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.progress import BarColumn, Progress, TextColumn

from langevin.cli.app import Json, On, Quiet, Set
from langevin.recipe import load_recipe
from langevin.report.terminal import messages, screen, table
from langevin.errors import Interrupted
from langevin.training.engines import LOCAL, open_engine

from .folds import cross_validate


def folds(
    recipe: Annotated[str, typer.Argument(help="a name from 'langevin recipes' or a TOML file")],
    count: Annotated[
        int | None, typer.Option("--folds", min=1, help="so many of the recipe's folds (default: all)")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="so many seeds, where the corpus has a test split")] = 10,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs side by side, one thread each (default: cores)")] = None,
    on: On = LOCAL,
    out: Annotated[Path | None, typer.Option(help="folder of the runs (default: runs/crossval-NAME)")] = None,
    forget_samples: Annotated[
        bool, typer.Option("--forget-samples", help="delete the samples of each run once it is evaluated")
    ] = False,
    set_: Set = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train and test on folds, or with seeds 0, 1, … where a test split is given; goes on with what
    is there."""
    target = out or Path("runs") / f"crossval-{Path(recipe).stem}"
    try:
        with open_engine(on, [target]) as engine, Watching(quiet or as_json) as watch:
            result = cross_validate(
                load_recipe(recipe, set_ or []), target, folds=count, runs=runs, jobs=jobs,
                forget_samples=forget_samples, watch=watch, engine=engine,
            )
    except Interrupted:
        messages.print(f"stopped; the same command goes on with what is in {target}", soft_wrap=True)
        raise typer.Exit(130) from None
    print(json.dumps(result)) if as_json else screen.print(crossval_table(result))


class Watching:
    """A live line on a terminal; without one, a plain line whenever a member is done and every
    minute."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.live = quiet, messages.is_terminal and not quiet
        self.done, self.last = -1, time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24))
        self.bar = Progress(*columns, console=messages, transient=True, disable=not self.live)
        self.number = self.bar.add_task("", total=None)

    def __enter__(self) -> Watching:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def __call__(self, done: int, total: int, working: dict[str, float]) -> None:
        text = f"{done} of {total} done  " + "  ".join(f"{name} {share:.0%}" for name, share in working.items())
        self.bar.update(self.number, description=text, total=total, completed=done + sum(working.values()))
        if not self.quiet and not self.live and (done != self.done or time.monotonic() - self.last > 60):
            self.done, self.last = done, time.monotonic()
            messages.print(text, soft_wrap=True)


def crossval_table(result: dict[str, Any]) -> Group:
    """mean ± standard deviation of each metric, for the last sample and for the average."""
    summary = result["summary"]

    def cell(name: str, spread: dict[str, float | None]) -> str:
        digits = 2 if name == "error" else 3
        return f"{spread['mean']:.{digits}f}" + ("" if spread["std"] is None else f" ± {spread['std']:.{digits}f}")

    names = {"single": "last sample", "averaged": "average of all"}
    rows = [(names[kind], *(cell(*item) for item in summary[kind].items())) for kind in names]
    title = f"{result['title']}: test, mean ± standard deviation over {result['count']} {result['over']}"
    return table(title, ("model", *summary["averaged"]), rows)
