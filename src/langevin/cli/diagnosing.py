"""The command that asks whether the samples can be trusted: diagnose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..predict.diagnosis import diagnose_runs
from ..predict.draws import write_netcdf
from ..report.diagnosis import diagnosis_page
from ..report.terminal import counting, screen
from .app import Discard, Json, Quiet, SkipDamaged, app


@app.command()
def diagnose(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="runs of one recipe, or a folder of chains")],
    split: Annotated[str, typer.Option(help="the held-out split: valid, test or train")] = "valid",
    discard: Discard = 0,
    batches: Annotated[int, typer.Option(min=0, help="training batches for each sample's gradient; 0: none")] = 8,
    full_gradient: Annotated[bool, typer.Option("--full-gradient", help="all training batches instead")] = False,
    probes: Annotated[int, typer.Option(min=1, help="how many single predictions to follow")] = 16,
    netcdf: Annotated[Path | None, typer.Option(help="write the draws for ArviZ into this file")] = None,
    skip_damaged: SkipDamaged = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """How well chains mix, how far they go, how hot they are, and a verdict in words."""
    with counting("samples", quiet or as_json) as begin:
        result, draws = diagnose_runs(
            folders, split=split, discard=discard, batches=None if full_gradient else batches, probes=probes,
            skip_damaged=skip_damaged, begin=begin,
        )
    if netcdf is not None:
        write_netcdf(draws, netcdf, {"runs": ", ".join(result["runs"]), "split": split})
    print(json.dumps(result)) if as_json else screen.print(diagnosis_page(result))
