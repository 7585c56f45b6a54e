"""Commands that ask a language model: generate, explain, score."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LangevinError
from ..posterior.selection import Selection
from ..predict.language import LanguagePosterior
from ..predict.load import open_as
from ..predict.results import Continuation, MeasuredText
from ..report.controls import show_controls
from ..report.explanation import (
    disagreement_in_words,
    draw_explanation,
    explanation_table,
    rows_of,
    scores_table,
    tokens_of,
)
from ..report.figures import refuse_figure
from ..report.progress import Bars
from ..report.terminal import screen
from .app import (
    Folder,
    Json,
    Overwrite,
    command_group,
    example,
    finite,
    say_skipped,
    say_unknown,
    takes_selection,
)

app = command_group()


@app.command(epilog=example('langevin explain runs/my "the snow lay deep"'))
@takes_selection
def explain(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="a sentence")],
    selection: Selection,
    parts: Annotated[
        int, typer.Option(min=1, help="how many samples to show beside the average")
    ] = 3,
    figure: Annotated[
        Path | None, typer.Option(help="draw it into this file (.png, .svg, .pdf)")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """The probability of each word of a sentence, under single samples and under their average."""
    refuse_figure(figure, overwrite=overwrite)
    with Bars(as_json) as progress:
        posterior = open_as(LanguagePosterior, folder, selection, progress)
    say_skipped(posterior.opened.chosen.skipped)
    result = posterior.score(text)
    if figure is not None:
        draw_explanation(tokens_of(result), rows_of(result, parts), figure)
    say_unknown(result.unknown_share)
    if as_json:
        print(json.dumps(result.to_dict()))
    else:
        screen.print(explanation_table(str(folder), result, parts))
        screen.print(disagreement_in_words(result), soft_wrap=True)


@app.command(epilog=example('langevin score runs/my "the snow lay deep" --file letter.txt'))
@takes_selection
def score(
    folder: Folder,
    selection: Selection,
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT…", help="texts")] = None,
    files: Annotated[
        list[Path] | None, typer.Option("--file", help="a text file; more than one may be given")
    ] = None,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="learn from each text while reading it")
    ] = False,
    as_json: Json = False,
) -> None:
    """How probable texts are: nll and perplexity of a token, bits of a byte, unknown words."""
    sources: list[str | Path] = [*(texts or []), *(files or [])]
    if not sources:
        raise LangevinError("expected a text, got none; pass one, or a file by --file")
    with Bars(as_json) as progress:
        posterior = open_as(LanguagePosterior, folder, selection, progress)
    say_skipped(posterior.opened.chosen.skipped)
    results = [
        MeasuredText(str(source), posterior.measure(source, adapt), adapt) for source in sources
    ]
    for result in results:
        say_unknown(result.scores.unknown_share, result.source if len(results) > 1 else None)
    if as_json:
        print(json.dumps([result.to_dict() for result in results]))
    else:
        reading = ", learning while reading" if adapt else ""
        screen.print(scores_table(f"{folder}: texts, after their start{reading}", results))


@app.command(epilog=example('langevin generate runs/my --prompt "Once upon " --length 100'))
@takes_selection
def generate(
    folder: Folder,
    selection: Selection,
    prompt: Annotated[str, typer.Option(help="text to continue (default: its start)")] = "",
    length: Annotated[int, typer.Option(min=1, help="how many tokens")] = 400,
    temperature: Annotated[
        float,
        typer.Option(
            min=0, callback=finite, help="1: as predicted; lower: safer; 0: most probable"
        ),
    ] = 0.8,
    top_k: Annotated[int | None, typer.Option(help="keep the k most probable tokens")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="keep the fewest tokens that hold this probability")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1)] = 0,
    as_json: Json = False,
) -> None:
    """Continue a text with the averaged model."""
    with Bars(as_json) as progress:
        posterior = open_as(LanguagePosterior, folder, selection, progress)
    say_skipped(posterior.opened.chosen.skipped)
    pieces = posterior.generate(
        prompt, length, seed=seed, softmax_temperature=temperature, top_k=top_k, top_p=top_p
    )
    if as_json:
        text = "".join(pieces)
        print(json.dumps(Continuation(prompt, text, len(posterior), temperature, seed).to_dict()))
        return
    sys.stdout.write(show_controls(prompt))
    for piece in pieces:
        sys.stdout.write(show_controls(piece))
        sys.stdout.flush()
    sys.stdout.write("\n")
