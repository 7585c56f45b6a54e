"""Commands that look at what a classifier knows of itself: calibrate, uncertain, curves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..predict.calibrating import calibrate_run, other_methods
from ..predict.classification import Classifier
from ..predict.uncertain import learning_curves, most_uncertain
from ..report.figures import refuse_figure
from ..report.sentences import (
    calibration_table,
    draw_calibration,
    draw_landscape,
    draw_runs,
    outside_table,
    runs_table,
    uncertain_table,
)
from ..report.terminal import counting, messages, screen
from ..training.session import Selection
from .app import Folder, Json, Overwrite, Quiet, app, say_skipped, takes_selection

Split = Annotated[str, typer.Option(help="train, valid or test")]


@app.command()
@takes_selection
def calibrate(
    folder: Folder,
    selection: Selection,
    split: Split = "test",
    mc_dropout: Annotated[
        int | None, typer.Option(min=0, help="dropout masks of the last sample (default: as many as samples; 0: none)")
    ] = None,
    other: Annotated[list[Path] | None, typer.Option(help="compare with another run or its --json output")] = None,
    outside: Annotated[str | None, typer.Option(help="texts of another kind: a data set or a file")] = None,
    figure: Annotated[Path | None, typer.Option(help="draw the reliability diagram into this file")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Are the probabilities right? Of the last sample, of the average and of Monte-Carlo dropout."""
    refuse_figure(figure, overwrite=overwrite)
    run = Classifier(folder, selection)
    with counting("samples", quiet or as_json) as begin:
        result = calibrate_run(run, split, mc_dropout, outside, begin)
        for path in other or []:
            methods, theirs = other_methods(path, split, begin)
            if theirs != result["split_sha256"]:
                messages.print(f"{path} was tested on other sentences; its numbers do not compare", style="yellow")
            result["methods"] |= methods
    if figure is not None:
        draw_calibration(figure, result["methods"])
    say_skipped(run.skipped)
    if as_json:
        print(json.dumps(result))
        return
    screen.print(calibration_table(result))
    if result["outside"]:
        screen.print(outside_table(result["outside"]))


@app.command()
@takes_selection
def uncertain(
    folder: Folder,
    selection: Selection,
    top: Annotated[int, typer.Option(min=1, help="how many sentences")] = 10,
    statistic: Annotated[
        str | None, typer.Option(help="standard_deviation (default; of one sample entropy), entropy, "
                                      "mutual_information or max_probability")
    ] = None,
    split: Split = "test",
    figure: Annotated[Path | None, typer.Option(help="draw all sentences by t-SNE, these circled")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The sentences that the samples are least certain about, with mean ± std of true and predicted class."""
    refuse_figure(figure, overwrite=overwrite)
    run = Classifier(folder, selection)
    with counting("samples", quiet or as_json) as begin:
        result, land = most_uncertain(run, top, statistic, split, begin, states=figure is not None)
    if figure is not None and land is not None:
        draw_landscape(figure, land, top)
    say_skipped(run.skipped)
    print(json.dumps(result)) if as_json else screen.print(uncertain_table(result))


@app.command()
def curves(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="run folders of classifiers")],
    figure: Annotated[Path | None, typer.Option(help="draw them into this file")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learning curves of classifiers: training, validation and test error by epochs."""
    refuse_figure(figure, overwrite=overwrite)
    with counting("samples", quiet or as_json) as begin:
        runs = [learning_curves(folder, begin) for folder in folders]
    if figure is not None:
        draw_runs(figure, runs)
    print(json.dumps(runs)) if as_json else screen.print(runs_table(runs))
