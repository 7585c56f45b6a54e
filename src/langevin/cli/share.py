"""Commands that hand a posterior on: export, check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..predict.export import export as export_run
from ..report.progress import Bars
from ..report.terminal import messages, screen
from ..store.card import COUNTS_TELL, half_precision
from ..store.check import check_folder
from ..posterior.selection import Selection
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
    with_counts: Annotated[
        bool, typer.Option("--with-counts", help="n-gram counts too: they contain the text")
    ] = False,
    evaluate: Annotated[
        bool, typer.Option(help="measure on the test split, where the data are there")
    ] = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a folder that stands alone: config, vocabulary, samples, card; no training data.

    Counts of a text are left out unless --with-counts takes them along: they contain the text.
    """
    with Bars(quiet or as_json) as progress:
        config = export_run(
            folder, out, selection, float16=float16, with_counts=with_counts, overwrite=overwrite,
            measure=evaluate, progress=progress,
        )  # fmt: skip
    if as_json:
        print(json.dumps(config.to_dict()))
        return
    for said in (COUNTS_TELL if config.counts else "", half_precision(config.metrics)):
        if said:
            messages.print(said)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    screen.print(
        Text(
            f"{out}: {config.samples} samples, {size:.1f} MB; "
            f"open it by langevin.load({str(out)!r})"
        )
    )


@app.command(epilog=example("langevin check runs/my"))
def check(folder: Folder, as_json: Json = False) -> None:
    """Compare every file of a run or an exported folder with its model and its checksum.

    Exit code 2 if anything is not as it was written.
    """
    findings = check_folder(folder)
    sound = all(finding.sound for finding in findings)
    if as_json:
        files = [finding.to_dict() for finding in findings]
        print(json.dumps({"folder": str(folder), "sound": sound, "files": files}))
    else:
        for finding in findings:
            state = "sound  " if finding.sound else "DAMAGED"
            screen.print(Text(f"{state}  {finding.file}  {finding.said}".rstrip()), soft_wrap=True)
        screen.print(Text(f"{folder} is {'sound' if sound else 'damaged'}"), soft_wrap=True)
    if not sound:
        raise typer.Exit(2)
