"""Commands that use a trained run: evaluate, explain, generate."""

from __future__ import annotations

import json
import sys
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Annotated

import typer

from ..data.vocabulary import END, Vocabulary
from ..predict.caption_scores import add_caption_scores, check_request
from ..predict.captioning import Search
from ..predict.compare import add_models
from ..predict.explain import as_prompt, explain_run
from ..predict.generate import generate as generate_tokens
from ..report.explanation import draw_explanation, explanation_table
from ..report.figures import refuse_figure
from ..report.summary import curve_table, evaluation_table, models_table
from ..report.terminal import counting, messages, screen
from ..store.folder import RunFolder
from ..training.loop import prepare_device
from ..training.session import BEST, Selection, evaluate_run, language_model_of, open_language_task, select, usual
from .app import Folder, Json, Overwrite, Quiet, SkipDamaged, app, say_skipped, takes_selection
from .captioning import LengthPower, MaxLength


@app.command()
@takes_selection
def evaluate(
    folder: Folder,
    selection: Selection,
    split: Annotated[str, typer.Option(help="train, valid or test")] = "test",
    text: Annotated[Path | None, typer.Option(help="score this text file instead of a split")] = None,
    mc_dropout: Annotated[int | None, typer.Option(min=1, help="average K dropout masks of the last sample")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="all three collections by number of samples")] = False,
    captions: Annotated[Path | None, typer.Option(help="caption the split into this file, with BLEU … CIDEr")] = None,
    beam: Annotated[int, typer.Option(help="width of the beam search for --captions")] = 5,
    length_power: LengthPower = 0.0,
    max_length: MaxLength = 20,
    overwrite: Overwrite = False,
    weight_average: Annotated[bool, typer.Option("--weight-average", help="the mean of the weights beside")] = False,
    student: Annotated[Path | None, typer.Option(metavar="DIR", help="a distilled run beside, with costs")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Metrics of the last sample and of the averaged model."""
    search = Search(beam, length_power=length_power, max_length=max_length)
    if captions is not None:
        check_request(folder, captions, search, text=text, mc_dropout=mc_dropout, overwrite=overwrite)
    with counting("samples", quiet or as_json) as begin:
        result = evaluate_run(folder, split, selection, text, begin, curve=curve, mc_dropout=mc_dropout)
        if captions is not None:
            result = add_caption_scores(result, selection, search, captions, begin)
        if weight_average or student is not None:
            result = add_models(result, selection, text, student, begin)
    say_skipped(result["skipped"])
    for note in result.get("notes", []):
        messages.print(note, style="yellow", soft_wrap=True)
    if as_json:
        print(json.dumps(result))
    else:
        screen.print(evaluation_table(result))
        if curve:
            screen.print(curve_table(result["curve"]))
        if "models" in result:
            screen.print(models_table(result["models"]))


@app.command()
def explain(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="a sentence")],
    samples: Annotated[int, typer.Option(min=1, help="how many samples to show beside the average")] = 3,
    figure: Annotated[Path | None, typer.Option(help="draw it into this file (.png, .svg, .pdf)")] = None,
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


@app.command()
def generate(
    folder: Folder,
    prompt: Annotated[str | None, typer.Option(help="text to continue (default: a token of the test text)")] = None,
    length: Annotated[int, typer.Option(min=1, help="how many tokens")] = 400,
    temperature: Annotated[float, typer.Option(help="1: as predicted; lower: safer; 0: most probable")] = 0.8,
    top_k: Annotated[int | None, typer.Option(help="keep the k most probable tokens")] = None,
    top_p: Annotated[float | None, typer.Option(help="keep the fewest tokens that hold this probability")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    select_: Annotated[str | None, typer.Option("--select", help="which collection (default: as evaluate)")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="how many samples to average (default: 10, or the best)")
    ] = None,
    skip_damaged: SkipDamaged = False,
    as_json: Json = False,
) -> None:
    """Continue a text with the averaged model."""
    run, how = RunFolder(folder), select_ or usual(folder, samples, skip_damaged=skip_damaged)
    count = samples if how == BEST else samples or run.store().of_each(10)
    with counting("validation", as_json) as begin_choice:
        chosen, _ = select(run, Selection(how, count, 0, skip_damaged), begin_choice)
    model, vocabulary = language_model_of(run)
    model = model.to(prepare_device(run.recipe))
    tokens: list[int] = []
    if prompt is None:
        begin = open_language_task(run).evaluated["test"].streams[0, :1]
        prompt = vocabulary.decode(begin).decode("utf-8", "replace")
    else:
        begin = as_prompt(vocabulary, prompt)
    stream = generate_tokens(
        model, chosen, begin, length, temperature=temperature, seed=seed, top_k=top_k, top_p=top_p
    )
    letters = getincrementaldecoder("utf-8")("replace")  # of which a byte may be but a part
    if not as_json:
        sys.stdout.write(prompt)
    for token in stream:
        tokens.append(token)
        if not as_json:
            sys.stdout.write(letters.decode(piece_of(vocabulary, token)))
            sys.stdout.flush()
    if as_json:
        written = vocabulary.decode(tokens).decode("utf-8", "replace")
        print(json.dumps({"prompt": prompt, "text": written, "samples": len(chosen), "temperature": temperature}))
    else:
        sys.stdout.write(letters.decode(b"", final=True) + "\n")


def piece_of(vocabulary: Vocabulary, token: int) -> bytes:
    """What a token looks like while a text is written: words after a space, the end of a line as one."""
    if vocabulary.level != "word":
        return vocabulary.decode([token])
    word = vocabulary.tokens[token]
    return b"\n" if word == END else f" {word}".encode()
