"""Commands that hand a posterior on: export, distill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..report.terminal import counting, messages, screen
from ..store.card import half_precision
from ..store.export import export as export_run
from ..training.distil import Teaching, start_student
from ..training.session import Selection
from .app import Folder, Json, Overwrite, Quiet, Set, app, takes_selection
from .training import finish


@app.command()
@takes_selection
def export(
    folder: Folder,
    selection: Selection,
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="the folder to write")],
    float16: Annotated[bool, typer.Option("--float16", help="half the size; its effect is measured")] = False,
    evaluate: Annotated[bool, typer.Option(help="measure on the test split, where the data are there")] = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a folder that stands alone: config, vocabulary, samples, model card. No training data."""
    with counting("samples", quiet or as_json) as begin:
        config = export_run(
            folder, out, selection, float16=float16, overwrite=overwrite,
            measure=evaluate, begin=begin,
        )
    if as_json:
        print(json.dumps(config))
        return
    measured = config["metrics"] or {}
    if "averaged_float32" in measured:
        messages.print(half_precision(measured["averaged"]["nll"], measured["averaged_float32"]["nll"]))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    screen.print(Text(f"{out}: {config['samples']} samples, {size:.1f} MB; open it by langevin.load({str(out)!r})"))


@app.command()
@takes_selection
def distill(
    folder: Folder,
    selection: Selection,
    out: Annotated[Path, typer.Option(help="run folder of the student")],
    hidden: Annotated[int | None, typer.Option(min=1, help="units of each layer (default: the teacher's)")] = None,
    epochs: Annotated[float | None, typer.Option(help="default: a quarter of the teacher's, or all")] = None,
    per_row: Annotated[int, typer.Option(help="samples that teach each row of a batch, in turn")] = Teaching.per_row,
    data_weight: Annotated[float, typer.Option(help="weight of the data against the teacher")] = Teaching.data_weight,
    generated: Annotated[int, typer.Option(help="train on so many tokens written by the teacher too")] = 0,
    set_: Set = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train one network to predict like the average of many samples; the student is an ordinary run."""
    teaching = Teaching(per_row, data_weight, generated)
    student = start_student(
        folder, out, selection, teaching, hidden=hidden, epochs=epochs, overrides=set_, overwrite=overwrite
    )
    finish(student, out, quiet, as_json)
