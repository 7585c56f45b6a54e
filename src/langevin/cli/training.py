"""Commands that train: train, resume, demo."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from ..errors import LangevinError
from ..predict.classification import imbalance
from ..recipe import load_recipe
from ..recipe.load import toml_value
from ..report.chains import ChainsProgress, chains_table
from ..report.summary import run_summary
from ..report.terminal import TrainingProgress, counting, duration, messages, screen, table
from ..store.folder import RunFolder
from ..store.replacement import refuse_target
from ..tasks import CLASSES
from ..training.chains import resume_chains, start_chains
from ..training.demo import run_demo
from ..training.jobs import PARENT
from ..training.loop import Interrupted, Trainer
from ..training.session import preferred, start, train_until_done
from ..training.session import resume as resume_run
from .app import Folder, Jobs, Json, Overwrite, Quiet, Set, app

NEXT = {"language-model": ("generate",), "classify": ("decide", "classify"), "caption": ("caption",)}
"""What to offer after training, by task."""


@app.command()
def train(
    recipe: Annotated[str | None, typer.Argument(help="a name from 'langevin recipes' or a TOML file")] = None,
    text: Annotated[Path | None, typer.Option(help="train on this text file")] = None,
    task: Annotated[str | None, typer.Option(help="what to learn; 'classify' for labelled sentences")] = None,
    labelled: Annotated[Path | None, typer.Option("--train", help="labelled sentences: CSV, TSV, JSONL, lines")] = None,
    valid: Annotated[Path | None, typer.Option(help="labelled sentences for validation")] = None,
    test: Annotated[Path | None, typer.Option(help="labelled sentences for the test")] = None,
    text_column: Annotated[str | None, typer.Option(help="column of the texts (default: text)")] = None,
    label_column: Annotated[str | None, typer.Option(help="column of the labels (default: label)")] = None,
    level: Annotated[str | None, typer.Option(help="byte, char or word")] = None,
    min_count: Annotated[int | None, typer.Option(help="words seen less often become <unk>")] = None,
    max_vocab: Annotated[int | None, typer.Option(help="keep so many of the most frequent words")] = None,
    running: Annotated[bool, typer.Option("--running", help="words: a line end is no end of a sentence")] = False,
    out: Annotated[Path | None, typer.Option(help="run folder (default: runs/NAME)")] = None,
    set_: Set = None,
    device: Annotated[str | None, typer.Option(help="torch device, such as cpu or cuda")] = None,
    chains: Annotated[int | None, typer.Option(min=1, help="run K chains from different seeds side by side")] = None,
    jobs: Jobs = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on a recipe, on your own text file, or on your own labelled sentences."""
    if task is not None and task not in CLASSES:
        raise LangevinError(f"--task must be one of {', '.join(CLASSES)}, got {task!r}")
    if recipe is None and text is None and labelled is None:
        needed = "--train FILE" if task == "classify" else "--text FILE or --task classify --train FILE"
        raise LangevinError(f"expected a recipe or {needed}, got none; see 'langevin recipes'")
    if text is not None and task == "classify":
        raise LangevinError(f"a classifier learns from labelled sentences, got --text {text}; pass them by --train")
    if text is not None and labelled is not None:
        raise LangevinError("expected either --text or --train, got both; a classifier learns from --train")
    overrides = list(set_ or [])
    overrides += [f"corpus={text.resolve()}"] if text else []
    overrides += sentence_settings(labelled, valid, test, text_column, label_column)
    overrides += [f"level={level}"] if level else []
    overrides += ["running=true"] if running else []
    for key, value in {"min_count": min_count, "max_vocab": max_vocab, "device": device}.items():
        overrides += [f"{key}={value}"] if value is not None else []
    named = recipe or ("text" if labelled is None else "classify")
    loaded = load_recipe(named, overrides)
    if task not in (None, loaded.task):
        raise LangevinError(f"expected a recipe for {task!r}, {named} is for {loaded.task!r}; leave --task out")
    own = text or labelled
    target = out or Path("runs") / (own.stem if own and recipe is None else Path(recipe or "").stem)
    refuse_target(target, loaded, overwrite=overwrite)
    if chains is None:
        trainer = start(loaded, target, overwrite=overwrite)
        say_imbalance(trainer.folder)
        finish(trainer, target, quiet, as_json)
    else:
        folder = start_chains(loaded, target, chains, overwrite=overwrite)
        say_imbalance(folder)
        finish_chains(folder, jobs, quiet, as_json)


def sentence_settings(
    labelled: Path | None, valid: Path | None, test: Path | None, text_column: str | None, label_column: str | None
) -> list[str]:
    """The options for labelled sentences as overrides of a recipe; quoted, as names may look like numbers."""
    files = {"corpus": labelled, "valid_file": valid, "test_file": test}
    given = {key: str(path.resolve()) for key, path in files.items() if path is not None}
    columns = {"text_column": text_column, "label_column": label_column}
    given |= {key: name for key, name in columns.items() if name is not None}
    return [f"{key}={toml_value(value)}" for key, value in given.items()]


@app.command()
def resume(folder: Folder, jobs: Jobs = None, quiet: Quiet = False, as_json: Json = False) -> None:
    """Go on with a run that was interrupted or killed; the end is the same, bit for bit."""
    run = RunFolder(folder)
    if run.chains:
        finish_chains(run, jobs, quiet, as_json)
    else:
        finish(resume_run(folder), folder, quiet, as_json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="where to keep the two runs")] = Path("runs/demo"),
    set_: Set = None,
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
        done = f"{folder} is finished already: {trainer.step} steps, {len(trainer.store)} samples"
        messages.print(done, soft_wrap=True)
    else:
        try:
            train_with_progress(trainer, folder.name, quiet)
        except Interrupted:
            messages.print(
                f"stopped at step {trainer.step} of {trainer.pace.total}; go on with: langevin resume {folder}",
                soft_wrap=True,
            )
            raise typer.Exit(130) from None
    best = choose_collection(trainer.folder, quiet or as_json)
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
            *([(f"best collection: {best['how']}, {best['samples']} samples", f"{best['score']:.4f}")] if best else []),
        ])
    )
    say_next(folder, "evaluate", *NEXT[trainer.task.name], "show")


def choose_collection(folder: RunFolder, quiet: bool) -> dict[str, Any] | None:
    """Which samples to average from now on, by validation; None of classifiers (see `usual`) and of one sample."""
    samples = folder.store().samples
    if folder.recipe.task == "classify" or len(samples) == 1 or PARENT in os.environ:  # chains choose together
        return None
    try:
        with counting("validation", quiet) as begin:
            return preferred(folder, samples, begin)
    except KeyboardInterrupt:
        messages.print(f"trained; stopped while choosing which samples to average: all, until 'langevin resume "
                       f"{folder.path}' chooses", soft_wrap=True)
        raise typer.Exit(130) from None


def finish_chains(folder: RunFolder, jobs: int | None, quiet: bool, as_json: bool) -> None:
    """Train all chains to the end, in processes of their own, and say what came out and what to type next."""
    try:
        with ChainsProgress(folder, quiet) as progress:
            trained = resume_chains(folder, jobs, progress)
    except KeyboardInterrupt:
        messages.print(f"stopped; go on with: langevin resume {folder.path}", soft_wrap=True)
        raise typer.Exit(130) from None
    if not trained:
        messages.print(f"{folder.path} is finished already: {len(folder.store())} samples", soft_wrap=True)
    choose_collection(folder, quiet or as_json)
    if as_json:
        print(json.dumps(run_summary(folder)))
        return
    screen.print(chains_table(folder))
    say_next(folder.path, "evaluate", *NEXT[folder.recipe.task], "diagnose", "show")


def say_imbalance(folder: RunFolder) -> None:
    """Of a classifier whose classes are far from equally frequent."""
    said = imbalance(folder.origin) if folder.recipe.task == "classify" else None
    if said:
        messages.print(Text(said, style="yellow"), soft_wrap=True)


def say_next(folder: Path, *commands: str) -> None:
    screen.print(Text("next: " + "   ".join(f"langevin {command} {folder}" for command in commands)))
