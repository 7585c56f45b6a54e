"""Commands that hand a posterior on: export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..report.card import half_precision
from ..report.terminal import counting, messages, screen
from ..sharing import export as export_run
from ..workflow import Selection
from .app import Discard, Folder, Json, Overwrite, Quiet, Samples, Select, SkipDamaged, app


@app.command()
def export(
    folder: Folder,
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="the folder to write")],
    select: Select = "thinned",
    samples: Samples = None,
    discard: Discard = 0,
    float16: Annotated[bool, typer.Option("--float16", help="half the size; its effect is measured")] = False,
    evaluate: Annotated[bool, typer.Option(help="measure on the test split, where the data are there")] = True,
    overwrite: Overwrite = False,
    skip_damaged: SkipDamaged = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a folder that stands alone: config, vocabulary, samples, model card. No training data."""
    with counting("samples", quiet or as_json) as begin:
        config = export_run(
            folder, out, Selection(select, samples, discard, skip_damaged), float16=float16, overwrite=overwrite,
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
