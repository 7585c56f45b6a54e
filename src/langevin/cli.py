"""Every command, thin: read options, call `workflow`, print."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from .data.datasets import DATASETS
from .demo import run_demo
from .errors import LangevinError
from .explain import explain_run
from .files import write_atomic
from .generate import generate as generate_tokens
from .recipe import load_recipe, shipped
from .report.explanation import draw_explanation, explanation_table
from .report.results import record as record_run
from .report.results import refresh
from .report.summary import curve_table, evaluation_table, learning_table, run_summary
from .report.terminal import TrainingProgress, counting, duration, messages, screen, show_log, table
from .runfolder import RunFolder, write_json
from .startup import prepare_process
from .train import Interrupted, Trainer, prepare_device
from .workflow import Selection, evaluate_run, open_run_task, select, start, train_until_done
from .workflow import resume as resume_run

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Train recurrent networks by stochastic-gradient MCMC and predict with the average of many weight samples.",
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a run folder")]
Json = Annotated[bool, typer.Option("--json", help="print numbers as JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
Select = Annotated[str, typer.Option(help="forward, backward or thinned collection")]
Samples = Annotated[int | None, typer.Option(help="how many samples to average (default: all)")]
Discard = Annotated[int, typer.Option(help="leave out so many samples from the start")]
SkipDamaged = Annotated[bool, typer.Option("--skip-damaged", help="use the sound samples when some are damaged")]


@app.command()
def train(
    recipe: Annotated[str | None, typer.Argument(help="a name from 'langevin recipes' or a TOML file")] = None,
    text: Annotated[Path | None, typer.Option(help="train on this text file")] = None,
    level: Annotated[str | None, typer.Option(help="byte, char or word")] = None,
    out: Annotated[Path | None, typer.Option(help="run folder (default: runs/NAME)")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a recipe key")] = None,
    preset: Annotated[str, typer.Option(help="paper, or authors: what their released code did")] = "paper",
    device: Annotated[str | None, typer.Option(help="torch device, such as cpu or cuda")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a run that is already in the folder")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on a recipe or on your own text file."""
    if recipe is None and text is None:
        raise LangevinError("expected a recipe or --text FILE, got neither; see 'langevin recipes'")
    overrides = list(set_ or [])
    overrides += [f"corpus={text.resolve()}"] if text else []
    overrides += [f"level={level}"] if level else []
    overrides += [f"device={device}"] if device else []
    if preset not in ("paper", "authors"):
        raise LangevinError(f"preset must be paper or authors, got {preset!r}")
    loaded = load_recipe(recipe or "text", overrides, "authors" if preset == "authors" else "paper")
    target = out or Path("runs") / (text.stem if text and recipe is None else Path(recipe or "").stem)
    finish(start(loaded, target, overwrite=overwrite), target, quiet, as_json)


@app.command()
def resume(folder: Folder, quiet: Quiet = False, as_json: Json = False) -> None:
    """Go on with a run that was interrupted or killed; the end is the same, bit for bit."""
    finish(resume_run(folder), folder, quiet, as_json)


@app.command()
def evaluate(
    folder: Folder,
    split: Annotated[str, typer.Option(help="train, valid or test")] = "test",
    select: Select = "thinned",
    samples: Samples = None,
    discard: Discard = 0,
    text: Annotated[Path | None, typer.Option(help="score this text file instead of a split")] = None,
    mc_dropout: Annotated[int | None, typer.Option(min=1, help="average K dropout masks of the last sample")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="all three collections by number of samples")] = False,
    skip_damaged: SkipDamaged = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Metrics of the last sample and of the averaged model."""
    with counting("samples", quiet or as_json) as begin:
        chosen = Selection(select, samples, discard, skip_damaged)
        result = evaluate_run(folder, split, chosen, text, begin, curve=curve, mc_dropout=mc_dropout)
    for problem in result["skipped"]:
        messages.print(f"skipped: {problem}", style="yellow")
    if as_json:
        print(json.dumps(result))
    else:
        screen.print(evaluation_table(result))
        if curve:
            screen.print(curve_table(result["curve"]))


@app.command()
def explain(
    folder: Folder,
    text: Annotated[str, typer.Argument(help="a sentence")],
    samples: Annotated[int, typer.Option(min=1, help="how many samples to show beside the average")] = 3,
    figure: Annotated[Path | None, typer.Option(help="draw it into this file (.png, .svg, .pdf)")] = None,
    as_json: Json = False,
) -> None:
    """The probability of each word of a sentence, under single samples and under their average."""
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
    select_: Annotated[str, typer.Option("--select", help="collection of samples")] = "thinned",
    samples: Annotated[int | None, typer.Option(help="how many samples to average (default: 10, or all)")] = None,
    skip_damaged: SkipDamaged = False,
    as_json: Json = False,
) -> None:
    """Continue a text with the averaged model."""
    run = RunFolder(folder)
    stored = len(run.store())
    chosen, _ = select(run, Selection(select_, samples or (min(10, stored) or None), 0, skip_damaged))
    task = open_run_task(run)
    model = task.build_model().to(prepare_device(run.recipe))
    vocabulary = task.vocabulary
    tokens: list[int] = []
    begin = task.evaluated["test"].streams[0, :1] if prompt is None else vocabulary.encode(prompt.encode())
    prompt = vocabulary.decode(begin).decode("utf-8", "replace") if prompt is None else prompt
    stream = generate_tokens(
        model, chosen, begin, length, temperature=temperature, seed=seed, top_k=top_k, top_p=top_p
    )
    if not as_json:
        sys.stdout.write(prompt)
    for token in stream:
        tokens.append(token)
        if not as_json:
            piece = vocabulary.decode([token]).decode("utf-8", "replace")
            sys.stdout.write(f" {piece}" if vocabulary.level == "word" else piece)
            sys.stdout.flush()
    if as_json:
        written = vocabulary.decode(tokens).decode("utf-8", "replace")
        print(json.dumps({"prompt": prompt, "text": written, "samples": len(chosen), "temperature": temperature}))
    else:
        sys.stdout.write("\n")


@app.command()
def show(folder: Folder, as_json: Json = False) -> None:
    """What a run is, how far it got, its schedules, learning curve and samples."""
    summary = run_summary(RunFolder(folder))
    if as_json:
        print(json.dumps(summary))
        return
    screen.print(table(str(folder), ("", ""), summary["facts"].items(), words=True))
    if summary["history"]:
        screen.print(learning_table(summary))


@app.command()
def recipes(as_json: Json = False) -> None:
    """The recipes that come with langevin."""
    listed = {name: load_recipe(path).title for name, path in shipped().items()}
    if as_json:
        print(json.dumps(listed))
    else:
        screen.print(table("recipes", ("name", "what it is"), listed.items(), words=True))


@app.command()
def data(as_json: Json = False) -> None:
    """The data sets that recipes name: found or not, where, and how to get them. Nothing is downloaded."""
    states = [dataset.state() for dataset in DATASETS.values()]
    if as_json:
        print(json.dumps(states))
        return
    screen.print(table("data sets", ("name", "state", "looked in", "what", "licence"), [
        ("war_and_peace", "embedded", "", "War and Peace, 3,258,246 bytes, 87 of them distinct", "public domain"),
        *((s["name"], s["state"], s["looked_in"], s["what"], s["licence"]) for s in states),
    ], words=True))
    for problem in (problem for s in states for problem in s["problems"][:1]):
        screen.print(Text(problem))


@app.command()
def record(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="the JSON file to write")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an older file")] = False,
) -> None:
    """Evaluate a finished run on validation and test, every collection, and keep the numbers."""
    if out.exists() and not overwrite:
        raise LangevinError(f"{out} exists; choose another --out or allow --overwrite")
    with counting("samples") as begin:
        write_json(out, record_run(folder, begin))


@app.command()
def tables(
    readme: Annotated[Path, typer.Option(help="the page to refresh")] = Path("README.md"),
    results: Annotated[Path, typer.Option(help="folder of recorded numbers")] = Path("results"),
) -> None:
    """Make the table of results in the README anew from the recorded numbers."""
    write_atomic(readme, refresh(readme.read_text(), results).encode())


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="where to keep the two runs")] = Path("runs/demo"),
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a recipe key")] = None,
    as_json: Json = False,
) -> None:
    """Three minutes: an optimiser and its sampling twin on War and Peace, compared."""
    try:
        result = run_demo(out, set_ or [], train_with_progress)
    except Interrupted:
        messages.print("stopped; 'langevin demo' goes on where it was")
        raise typer.Exit(130) from None
    print(json.dumps(result.numbers)) if as_json else screen.print(result.page)


def train_with_progress(trainer: Trainer, label: str, quiet: bool = False) -> None:
    with TrainingProgress(label, quiet) as progress:
        train_until_done(trainer, progress)


def finish(trainer: Trainer, folder: Path, quiet: bool, as_json: bool) -> None:
    """Train to the end and say what came out and what to type next."""
    if trainer.finished:
        messages.print(f"{folder} is finished already: {trainer.step} steps, {len(trainer.store)} samples")
    else:
        try:
            train_with_progress(trainer, folder.name, quiet)
        except Interrupted:
            messages.print(
                f"stopped at step {trainer.step} of {trainer.pace.total}; go on with: langevin resume {folder}"
            )
            raise typer.Exit(130) from None
    summary = run_summary(trainer.folder)
    if as_json:
        print(json.dumps(summary))
        return
    last = next(line for line in reversed(trainer.history) if "average" in line)
    score = trainer.task.score
    screen.print(
        table(f"{folder}: validation {score} after {duration(trainer.seconds)}", ("model", score), [
            ("last sample", f"{last['valid'][score]:.4f}"),
            (f"average of {trainer.running.count} samples", f"{last['average'][score]:.4f}"),
        ])
    )
    screen.print(Text(f"next: langevin evaluate {folder}   langevin generate {folder}   langevin show {folder}"))


def main() -> None:
    """Entry point: one clear message and exit code 2 for anything the user can mend; typer does so for its own."""
    prepare_process()
    show_log()
    try:
        app()
    except LangevinError as error:
        messages.print(Text(f"langevin: {error}"), soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)
