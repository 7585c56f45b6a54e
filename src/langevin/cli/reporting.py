"""Commands that tell of a run: uncertainty, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..predict.ranking import TOKENS, uncertainty_of_run
from ..report.page import write_report
from ..report.terminal import counting, messages, screen
from ..report.uncertain import uncertainty_page
from ..store.folder import REPORT
from ..training.session import Selection
from .app import Folder, Json, Overwrite, Quiet, SkipDamaged, app, say_skipped, takes_selection

Tokens = Annotated[int, typer.Option(min=1, help="look at about so many tokens, evenly spread over the split")]


@app.command()
@takes_selection
def uncertainty(
    folder: Folder,
    selection: Selection,
    split: Annotated[str, typer.Option(help="train, valid or test")] = "test",
    top: Annotated[int, typer.Option(min=0, help="list so many of the most uncertain items")] = 20,
    by: Annotated[
        str | None, typer.Option(help="rank by mutual_information, entropy, standard_deviation or max_probability")
    ] = None,
    tokens: Tokens = TOKENS,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What a run is unsure of: words, sentences or captions, and how far its probabilities can be believed."""
    with counting("samples", quiet or as_json) as begin:
        result = uncertainty_of_run(folder, split, selection, tokens=tokens, top=top, by=by, begin=begin).numbers()
    say_skipped(result["skipped"])
    print(json.dumps(result)) if as_json else screen.print(uncertainty_page(result))


@app.command()
def report(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(help=f"the page to write (default: DIR/{REPORT})")] = None,
    split: Annotated[str | None, typer.Option(help="train, valid or test (default: test, if there is one)")] = None,
    tokens: Tokens = TOKENS,
    overwrite: Overwrite = False,
    skip_damaged: SkipDamaged = False,
    quiet: Quiet = False,
) -> None:
    """One page about a run, to open in a browser: curves, calibration, diagnostics, examples, cost."""
    target = out or folder / REPORT
    with counting("work", quiet) as begin:
        write_report(
            folder, target, split=split, tokens=tokens, overwrite=overwrite, skip_damaged=skip_damaged, begin=begin
        )
    messages.print(f"wrote {target}", soft_wrap=True)
