"""Commands that judge a classifier: decide, calibrate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LangevinError
from ..predict.calibration import calibrate as calibrate_posterior
from ..predict.calibration import other_methods
from ..predict.classification import ClassificationPosterior
from ..predict.decision import Decision
from ..predict.load import open_as
from ..report.figures import refuse_figure
from ..report.progress import Bars
from ..report.sentences import (
    calibration_table,
    draw_calibration,
    draw_decision,
    outside_table,
    promise_in_words,
    ranking_table,
    sets_in_words,
)
from ..report.terminal import messages, screen
from ..posterior.selection import Selection
from .app import (
    MASKS,
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
    cost: Annotated[
        float | None,
        typer.Option(help="of an error, in answers by a person: accept what is cheapest"),
    ] = None,
    sets: Annotated[
        float | None,
        typer.Option(
            metavar="ALPHA", help="sets of classes instead, that miss the true one in this share"
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="draw risk against coverage into this file")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn on validation which answers to accept, keep the rule, and test its promise."""
    refuse_figure(figure, overwrite=overwrite)
    if (sets is None) == (risk is None and coverage is None and cost is None):
        what = "neither" if sets is None else "--sets beside another"
        raise LangevinError(
            f"expected --risk SHARE or --coverage SHARE or --cost N or --sets ALPHA, got "
            f"{what}; such as --risk 0.05"
        )
    if sets is not None:
        learn_sets_of(folder, selection, sets, quiet, as_json)
        return
    with Bars(quiet or as_json) as progress:
        posterior = open_as(ClassificationPosterior, folder, selection, progress)
        told = posterior.decide(
            risk, coverage, cost=cost, confidence=confidence, statistic=statistic,
            progress=progress,
        )
    if figure is not None:
        draw_decision(figure, told)
    say_skipped(told.skipped)
    print_decision(told, as_json)


def print_decision(told: Decision, as_json: bool) -> None:
    if as_json:
        print(json.dumps(told.to_dict()))
        return
    screen.print(ranking_table(told))
    screen.print(promise_in_words(told), soft_wrap=True)


def learn_sets_of(
    folder: Path, selection: Selection, alpha: float, quiet: bool, as_json: bool
) -> None:
    """What `decide --sets` prints."""
    with Bars(quiet or as_json) as progress:
        told = open_as(ClassificationPosterior, folder, selection, progress).sets(alpha, progress)
    say_skipped(told.skipped)
    print(json.dumps(told.to_dict())) if as_json else screen.print(
        sets_in_words(told), soft_wrap=True
    )


@app.command(epilog=example("langevin calibrate runs/mine --figure calibration.png"))
@takes_selection
def calibrate(
    folder: Folder,
    selection: Selection,
    split: Split = "test",
    mc_dropout: Annotated[
        int | None,
        typer.Option(min=0, max=MASKS, help="dropout masks of the last sample (0: none)"),
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
    with Bars(quiet or as_json) as progress:
        posterior = open_as(ClassificationPosterior, folder, selection, progress)
        told = calibrate_posterior(posterior, split, mc_dropout, outside, progress)
        for path in other or []:
            methods, theirs = other_methods(path, split, progress)
            if theirs != told.split_sha256:
                messages.print(
                    f"{path} was tested on other sentences; its numbers do not compare",
                    style="yellow",
                )
            told = replace(told, methods=told.methods | methods)
    if figure is not None:
        draw_calibration(figure, told.methods)
    say_skipped(told.skipped)
    if as_json:
        print(json.dumps(told.to_dict()))
        return
    screen.print(calibration_table(told))
    if told.outside is not None:
        screen.print(outside_table(told.outside))
