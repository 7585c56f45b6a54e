"""Commands that judge a classifier: decide, calibrate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LangevinError
from ..predict.calibrating import calibrate_run, other_methods
from ..predict.classification import Classifier
from ..predict.decision import Target, decide_run
from ..report.figures import refuse_figure
from ..report.progress import Bars
from ..report.sentences import (
    calibration_table,
    draw_calibration,
    draw_decision,
    outside_table,
    promise_in_words,
    ranking_table,
)
from ..report.terminal import messages, screen
from ..posterior.selection import Selection
from .app import (
    Confidence,
    Coverage,
    Folder,
    Json,
    Overwrite,
    Quiet,
    Risk,
    Split,
    Statistic,
    command_group,
    example,
    say_skipped,
    takes_selection,
)

app = command_group()


@app.command(epilog=example("langevin decide runs/mine --risk 0.05"))
@takes_selection
def decide(
    folder: Folder,
    selection: Selection,
    risk: Risk = None,
    coverage: Coverage = None,
    confidence: Confidence = None,
    statistic: Statistic = "auto",
    figure: Annotated[
        Path | None, typer.Option(help="draw risk against coverage into this file")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn on validation which answers to accept, keep the rule, and test its promise."""
    refuse_figure(figure, overwrite=overwrite)
    target = Target.asked(risk, coverage, confidence, statistic)
    if target is None:
        raise LangevinError(
            "expected --risk SHARE or --coverage SHARE, got neither; such as --risk 0.05"
        )
    run = Classifier(folder, selection)
    with Bars(quiet or as_json) as progress:
        result, judged = decide_run(run, target, progress)
    if figure is not None:
        draw_decision(figure, judged.get("test", judged["valid"]), risk)
    say_skipped(run.skipped)
    if as_json:
        print(json.dumps(result))
        return
    screen.print(ranking_table(result))
    screen.print(promise_in_words(result), soft_wrap=True)


@app.command(epilog=example("langevin calibrate runs/mine --figure calibration.png"))
@takes_selection
def calibrate(
    folder: Folder,
    selection: Selection,
    split: Split = "test",
    mc_dropout: Annotated[
        int | None,
        typer.Option(
            min=0, help="dropout masks of the last sample (default: as many as samples; 0: none)"
        ),
    ] = None,
    other: Annotated[
        list[Path] | None, typer.Option(help="compare with another run or its --json output")
    ] = None,
    outside: Annotated[
        str | None, typer.Option(help="texts of another kind: a data set or a file")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="draw the reliability diagram into this file")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Are the probabilities right? Of the last sample, the average and Monte-Carlo dropout."""
    refuse_figure(figure, overwrite=overwrite)
    run = Classifier(folder, selection)
    with Bars(quiet or as_json) as progress:
        result = calibrate_run(run, split, mc_dropout, outside, progress)
        for path in other or []:
            methods, theirs = other_methods(path, split, progress)
            if theirs != result["split_sha256"]:
                messages.print(
                    f"{path} was tested on other sentences; its numbers do not compare",
                    style="yellow",
                )
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
