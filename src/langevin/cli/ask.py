"""Commands that ask a language model: generate, explain."""

from __future__ import annotations

import json
import sys
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Annotated

import typer

from ..data.display import visible
from ..data.vocabulary import END, Vocabulary
from ..predict.explain import explain_run
from ..predict.generate import generate as generate_tokens
from ..report.controls import show_controls
from ..report.explanation import draw_explanation, explanation_table
from ..report.figures import refuse_figure
from ..report.progress import Bars
from ..report.terminal import messages, screen
from ..store.folder import RunFolder
from ..process import prepare_device
from ..posterior.selection import BEST, Selection, resolve
from ..tasks.language_model import language_model_of, open_language_task
from .app import (
    Folder,
    Json,
    Overwrite,
    SkipDamaged,
    command_group,
    example,
    finite,
)
from ..tasks.choice import choosing

app = command_group()

@app.command(epilog=example('langevin explain runs/my "the snow lay deep"'))
def explain(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="a sentence")],
    samples: Annotated[
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
    result = explain_run(folder, text)
    if figure is not None:
        draw_explanation(result, figure, samples)
    if as_json:
        print(json.dumps(result))
    else:
        screen.print(explanation_table(result, samples))


@app.command(epilog=example('langevin generate runs/my --prompt "Once upon " --length 100'))
def generate(
    folder: Folder,
    prompt: Annotated[
        str | None, typer.Option(help="text to continue (default: a token of the test text)")
    ] = None,
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
    select_: Annotated[
        str | None, typer.Option("--select", help="which collection (default: as evaluate)")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="how many samples to average (default: 10, or the best)"),
    ] = None,
    skip_damaged: SkipDamaged = False,
    as_json: Json = False,
) -> None:
    """Continue a text with the averaged model."""
    run = RunFolder(folder)
    with Bars(as_json) as progress:
        found = resolve(run, Selection(select_, samples, 0, skip_damaged), choosing(progress))
    chosen = found.samples
    if samples is None and found.how != BEST:
        chosen = run.store(skip_damaged=skip_damaged).select(found.how, run.store().of_each(10))
    model, vocabulary = language_model_of(run)
    model = model.to(prepare_device(run.recipe.run.device, run.recipe.run.threads))
    tokens: list[int] = []
    if prompt is None:
        begin = open_language_task(run).evaluated["test"].streams[0, :1].long()
        prompt = vocabulary.decode(begin).decode("utf-8", "replace")
    else:
        spelled = vocabulary.spell(prompt)
        begin = spelled.tokens
        if spelled.unknown:
            words = ", ".join(map(visible, spelled.unknown.values()))
            messages.print(f"read as <unk>: {words}", markup=False)
    stream = generate_tokens(
        model, chosen, begin, length, temperature=temperature, seed=seed, top_k=top_k, top_p=top_p
    )
    letters = getincrementaldecoder("utf-8")("replace")  # of which a byte may be but a part
    if not as_json:
        sys.stdout.write(show_controls(prompt))
    for token in stream:
        tokens.append(token)
        if not as_json:
            sys.stdout.write(show_controls(letters.decode(piece_of(vocabulary, token))))
            sys.stdout.flush()
    if as_json:
        written = vocabulary.decode(tokens).decode("utf-8", "replace")
        print(
            json.dumps(
                {
                    "prompt": prompt,
                    "text": written,
                    "samples": len(chosen),
                    "temperature": temperature,
                }
            )
        )
    else:
        sys.stdout.write(show_controls(letters.decode(b"", final=True)) + "\n")


def piece_of(vocabulary: Vocabulary, token: int) -> bytes:
    """What a token looks like while a text is written: words after a space."""
    if vocabulary.level != "word":
        return vocabulary.decode([token])
    word = vocabulary.tokens[token]
    return b"\n" if word == END else f" {word}".encode()
