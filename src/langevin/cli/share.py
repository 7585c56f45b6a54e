"""Commands that hand a posterior on: export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..predict.export import export as export_run
from ..report.terminal import counting, messages, screen
from ..store.card import half_precision
from ..training.session import Selection
from .app import Folder, Json, Overwrite, Quiet, command_group, example, takes_selection

app = command_group()


@app.command(epilog=example("langevin export runs/my shared --float16"))
@takes_selection
def export(
    folder: Folder,
    selection: Selection,
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="the folder to write")],
    float16: Annotated[
        bool, typer.Option("--float16", help="half the size; its effect is measured")
    ] = False,
    evaluate: Annotated[
        bool, typer.Option(help="measure on the test split, where the data are there")
    ] = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a folder that stands alone: config, vocabulary, samples, card; no training data."""
    with counting("samples", quiet or as_json) as begin:
        config = export_run(
            folder,
            out,
            selection,
            float16=float16,
            overwrite=overwrite,
            measure=evaluate,
            begin=begin,
        )
    if as_json:
        print(json.dumps(config.to_dict()))
        return
    if said := half_precision(config.metrics):
        messages.print(said)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    screen.print(
        Text(
            f"{out}: {config.samples} samples, {size:.1f} MB; "
            f"open it by langevin.load({str(out)!r})"
        )
    )
