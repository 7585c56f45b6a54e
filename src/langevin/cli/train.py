"""Commands that train: train, resume, distill."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..errors import LangevinError
from ..recipe import Recipe, load_recipe
from ..recipe.load import toml_value
from ..recipe.sentences import default_recipe
from ..report.terminal import be_quiet, messages
from ..store.folder import RunFolder
from ..store.replacement import refuse_target
from ..tasks import CLASSES
from ..training.chains import start_chains
from ..training.distil import Teaching, start_student
from ..posterior.selection import Selection
from ..training.engines import LOCAL, open_engine
from ..training.extension import extend
from ..training.parallel import find_group, refuse_together
from ..training.session import began_here, start
from ..training.twin import twin_recipe
from ..training.session import resume as resume_run
from .app import (
    Folder,
    Gpus,
    Jobs,
    Json,
    On,
    Overwrite,
    Quiet,
    Set,
    command_group,
    example,
    takes_selection,
)
from .outcome import finish, finish_chains, say_imbalance, train_chains
from .train_captions import CaptionOptions, look_at_pictures, takes_pictures

app = command_group()


@app.command(epilog=example("langevin train --text my.txt --out runs/my"))
@takes_pictures
def train(
    pictures: CaptionOptions,
    recipe: Annotated[
        str | None, typer.Argument(help="a name from 'langevin recipes' or a TOML file")
    ] = None,
    text: Annotated[Path | None, typer.Option(help="train on this text file")] = None,
    task: Annotated[
        str | None, typer.Option(help="what to learn: classify for labelled sentences, caption for pictures")
    ] = None,
    labelled: Annotated[
        Path | None, typer.Option("--train", help="labelled sentences: CSV, TSV, JSONL, lines")
    ] = None,
    valid: Annotated[Path | None, typer.Option(help="labelled sentences for validation")] = None,
    test: Annotated[Path | None, typer.Option(help="labelled sentences for the test")] = None,
    text_column: Annotated[
        str | None, typer.Option(help="column of the texts (default: text)")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="column of the labels (default: label)")
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option(help="balanced: every class counts alike, however rare")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="read labelled sentences by this encoder: a folder or a name")
    ] = None,
    vectors: Annotated[
        list[str] | None, typer.Option(help="word vectors, by name or file; may be repeated")
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="fit linear parts to validation too; then no promises")
    ] = False,
    level: Annotated[str | None, typer.Option(help="byte, char or word")] = None,
    min_count: Annotated[
        int | None, typer.Option(help="words seen less often become <unk>")
    ] = None,
    max_vocab: Annotated[
        int | None, typer.Option(help="keep so many of the most frequent words")
    ] = None,
    running: Annotated[
        bool, typer.Option("--running", help="words: a line end is no end of a sentence")
    ] = False,
    epochs: Annotated[float | None, typer.Option(help="passes over the data")] = None,
    minutes: Annotated[float | None, typer.Option(help="of training at most")] = None,
    out: Annotated[Path | None, typer.Option(help="run folder (default: runs/NAME)")] = None,
    set_: Set = None,
    device: Annotated[str | None, typer.Option(help="torch device, such as cpu or cuda")] = None,
    chains: Annotated[
        int | None, typer.Option(min=1, help="run K chains from different seeds side by side")
    ] = None,
    jobs: Jobs = None,
    on: On = LOCAL,
    cpus: Annotated[
        int, typer.Option("--cpus-per-chain", min=1, help="threads of each chain")
    ] = 1,
    gpus: Gpus = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="train the optimiser too, at equal cost, and compare")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on a recipe, on your own text file, labelled sentences, or captioned pictures."""
    if task is not None and task not in CLASSES:
        raise LangevinError(f"--task must be one of {', '.join(CLASSES)}, got {task!r}")
    pictures.check(task, recipe, {"--text": text, "--train": labelled})
    if recipe is None and text is None and labelled is None and not pictures.given:
        needed = (
            "--train FILE" if task == "classify" else "--text FILE, --task classify --train FILE "
            "or --task caption --captions FILE"
        )
        raise LangevinError(f"expected a recipe or {needed}, got none; see 'langevin recipes'")
    if text is not None and task == "classify":
        raise LangevinError(
            f"a classifier learns from labelled sentences, got --text {text}; pass them by --train"
        )
    if text is not None and labelled is not None:
        raise LangevinError(
            "expected either --text or --train, got both; a classifier learns from --train"
        )
    overrides = list(set_ or [])
    overrides += [f"corpus={text.resolve()}"] if text else []
    overrides += sentence_settings(labelled, valid, test, text_column, label_column)
    overrides += knowledge_settings(vectors, encoder)
    overrides += pictures.settings()
    overrides += [f"class_weight={class_weight}"] if class_weight else []
    overrides += ["refit=true"] if refit else []
    overrides += [f"level={level}"] if level else []
    overrides += ["running=true"] if running else []
    numbers = {
        "min_count": min_count, "max_vocab": max_vocab, "epochs": epochs, "minutes": minutes,
    }  # fmt: skip
    for key, value in (numbers | {"device": device}).items():
        overrides += [f"{key}={value}"] if value is not None else []
    usual = "text" if labelled is None else default_recipe(vectors, encoder)
    named = recipe or ("captions" if pictures.given else usual)
    loaded = load_recipe(named, overrides)
    if task not in (None, loaded.task):
        raise LangevinError(
            f"expected a recipe for {task!r}, {named} is for {loaded.task!r}; leave --task out"
        )
    own = text or labelled or pictures.captions
    target = out or Path("runs") / (own.stem if own and recipe is None else Path(recipe or "").stem)
    refuse_without_chains(chains is not None, on, cpus, gpus)
    if chains is not None or compare:
        refuse_together("several chains" if chains else "--compare")
    if first_speaks() and not began_here(target):
        refuse_target(target, loaded, overwrite=overwrite)
        look_at_pictures(loaded, quiet or as_json)
    beside = twin_target(target, loaded, chains, overwrite=overwrite) if compare else None
    if chains is None:
        first_speaks()
        trainer = start(loaded, target, overwrite=overwrite)
        if first_speaks():
            say_imbalance(trainer.folder)
        twin = start(twin_recipe(trainer.recipe), beside, overwrite=overwrite) if beside else None
        finish(trainer, target, quiet, as_json, twin)
    else:
        with open_engine(on, [target]) as engine:
            folder = start_chains(loaded, target, chains, cpus=cpus, overwrite=overwrite)
            say_imbalance(folder)
            train_chains(folder, jobs, quiet, engine, gpus)
        finish_chains(folder, quiet, as_json)


def refuse_without_chains(several: bool, on: str, cpus: int = 1, gpus: float | None = None) -> None:
    """One run alone is trained by this process, on the threads of its recipe."""
    if not several and (on != LOCAL or cpus != 1 or gpus is not None):
        raise LangevinError("expected chains for --on, --cpus-per-chain and --gpus-per-chain, got "
                            "one run, which trains in this process; ask for some by --chains")


def twin_target(target: Path, recipe: Recipe, chains: int | None, *, overwrite: bool) -> Path:
    """The folder of the optimiser twin, beside that of the run; all that is wrong is said now."""
    if chains is not None:
        raise LangevinError("expected --compare or --chains, got both; compare one run")
    twin = twin_recipe(recipe)
    beside = target.with_name(f"{target.name}-{twin.sampler.name}")
    refuse_target(beside, twin, overwrite=overwrite)
    return beside


def knowledge_settings(vectors: list[str] | None, encoder: str | None) -> list[str]:
    """What is known of words before training, as overrides."""
    known: dict[str, object] = {"encoder": encoder, "vectors": vectors}
    if vectors and len(vectors) == 1:
        known["vectors"] = vectors[0]
    return [f"{key}={toml_value(value)}" for key, value in known.items() if value]


def sentence_settings(
    labelled: Path | None,
    valid: Path | None,
    test: Path | None,
    text_column: str | None,
    label_column: str | None,
) -> list[str]:
    """The options for labelled sentences as overrides; quoted, as names may look like numbers."""
    files = {"corpus": labelled, "valid_file": valid, "test_file": test}
    given = {key: str(path.resolve()) for key, path in files.items() if path is not None}
    columns = {"text_column": text_column, "label_column": label_column}
    given |= {key: name for key, name in columns.items() if name is not None}
    return [f"{key}={toml_value(value)}" for key, value in given.items()]


@app.command(epilog=example("langevin resume runs/my"))
def resume(
    folder: Folder,
    epochs: Annotated[
        float | None, typer.Option(help="make a finished run so many epochs long")
    ] = None,
    jobs: Jobs = None,
    on: On = LOCAL,
    gpus: Gpus = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Go on with a run that was interrupted or killed; the end is the same, bit for bit."""
    if not first_speaks():
        finish(resume_run(folder), folder, quiet, as_json)
        return
    refuse_without_chains(bool(RunFolder(folder).chains), on, gpus=gpus)
    if epochs is not None and not extended_before(folder, epochs):
        messages.print(Text(f"{folder} {extend(folder, epochs)}"), soft_wrap=True)
    run = RunFolder(folder)
    if run.chains:
        refuse_together("several chains")
        with open_engine(on, [folder]) as engine:
            train_chains(run, jobs, quiet, engine, gpus)
        finish_chains(run, quiet, as_json)
    else:
        finish(resume_run(folder), folder, quiet, as_json)


def first_speaks() -> bool:
    """Whether this is the first, or only, process of a training; the others show nothing."""
    is_first = find_group().number == 0
    if not is_first:
        be_quiet()
    return is_first


def extended_before(folder: Path, epochs: float) -> bool:
    """Whether torchrun starts `resume` anew, and the run was made so long already."""
    anew = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    return anew and RunFolder(folder).recipe.run.epochs == epochs


@app.command(epilog=example("langevin distill runs/my --out runs/student --epochs 1"))
@takes_selection
def distill(
    folder: Folder,
    selection: Selection,
    out: Annotated[Path, typer.Option(help="run folder of the student")],
    hidden: Annotated[
        int | None, typer.Option(min=1, help="units of each layer (default: the teacher's)")
    ] = None,
    epochs: Annotated[
        float | None, typer.Option(help="default: a quarter of the teacher's, or all")
    ] = None,
    per_row: Annotated[
        int, typer.Option(help="samples that teach each row of a batch, in turn")
    ] = Teaching.per_row,
    data_weight: Annotated[
        float, typer.Option(help="weight of the data against the teacher")
    ] = Teaching.data_weight,
    generated: Annotated[
        int, typer.Option(help="train on so many tokens written by the teacher too")
    ] = 0,
    set_: Set = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train one network to predict like the average of many; the student is an ordinary run."""
    refuse_together("a student")
    teaching = Teaching(per_row, data_weight, generated)
    student = start_student(
        folder,
        out,
        selection,
        teaching,
        hidden=hidden,
        epochs=epochs,
        overrides=set_,
        overwrite=overwrite,
    )
    finish(student, out, quiet, as_json)
