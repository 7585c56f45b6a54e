"""Commands that look: show, report, recipes, data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..data.catalogue import DATASETS
from ..predict.ranking import TOKENS
from ..recipe import Recipe, load_recipe, shipped
from ..recipe.load import TABLES
from ..report.chains import chains_table
from ..report.page import write_report
from ..report.progress import Bars
from ..report.summary import learning_table, run_summary
from ..report.terminal import messages, screen, table
from ..store.folder import REPORT, RunFolder
from .app import Folder, Json, Overwrite, Quiet, SkipDamaged, Tokens, command_group, example

app = command_group()


@app.command(epilog=example("langevin show runs/my"))
def show(folder: Folder, as_json: Json = False) -> None:
    """What a run is, how far it got, its schedules, learning curve and samples."""
    run = RunFolder(folder)
    summary = run_summary(run)
    if as_json:
        print(json.dumps(summary))
        return
    screen.print(table(str(folder), ("", ""), summary["facts"].items(), words=True))
    if run.chains:
        screen.print(chains_table(run))
    elif summary["history"]:
        screen.print(learning_table(summary))


@app.command(epilog=example("langevin recipes text"))
def recipes(
    name: Annotated[
        str | None, typer.Argument(help="all keys of this one, what they mean, what it has")
    ] = None,
    as_json: Json = False,
) -> None:
    """The recipes that come with langevin, or all keys of one: what --set of train can change."""
    if name is not None:
        show_recipe(load_recipe(name), as_json)
        return
    listed = {name: load_recipe(path).title for name, path in shipped().items()}
    if as_json:
        print(json.dumps(listed))
    else:
        screen.print(table("recipes", ("name", "what it is"), listed.items(), words=True))


def show_recipe(recipe: Recipe, as_json: bool) -> None:
    parts = {part: getattr(recipe, part) for part in TABLES}
    keys = {
        f"{part}.{key}": {"value": getattr(own, key), "meaning": field.description}
        for part, own in parts.items()
        for key, field in type(own).model_fields.items()
    }
    if as_json:
        print(json.dumps(keys))
        return
    rows = [
        (key, "none" if told["value"] is None else str(told["value"]), told["meaning"])
        for key, told in keys.items()
    ]
    screen.print(table(recipe.title, ("key", "value", "what it means"), rows, words=True))


@app.command(epilog=example("langevin data"))
def data(as_json: Json = False) -> None:
    """The data sets that recipes name: found or not, and how to get them. It downloads none."""
    states = [dataset.state() for dataset in DATASETS.values()]
    if as_json:
        print(json.dumps(states))
        return
    screen.print(
        table(
            "data sets",
            ("name", "state", "looked in", "what", "licence"),
            [
                (
                    "war_and_peace",
                    "embedded",
                    "",
                    "War and Peace, 3,258,246 bytes, 87 of them distinct",
                    "public domain",
                ),
                *((s["name"], s["state"], s["looked_in"], s["what"], s["licence"]) for s in states),
            ],
            words=True,
        )
    )
    for problem in (problem for s in states for problem in s["problems"][:1]):
        screen.print(Text(problem))


@app.command(epilog=example("langevin report runs/my"))
def report(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help=f"the page to write (default: DIR/{REPORT})")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="train, valid or test (default: test, if there is one)")
    ] = None,
    tokens: Tokens = TOKENS,
    overwrite: Overwrite = False,
    skip_damaged: SkipDamaged = False,
    quiet: Quiet = False,
) -> None:
    """One page about a run, for a browser: curves, calibration, diagnostics, examples, cost."""
    target = out or folder / REPORT
    with Bars(quiet) as progress:
        write_report(
            folder,
            target,
            split=split,
            tokens=tokens,
            overwrite=overwrite,
            skip_damaged=skip_damaged,
            progress=progress,
        )
    messages.print(f"wrote {target}", soft_wrap=True)
