"""Commands that train: train, resume, distill."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..errors import LangevinError
from ..posterior.selection import Selection
from ..recipe import Recipe, load_recipe
from ..report.terminal import be_quiet, messages
from ..store.folder import RunFolder
from ..store.replacement import refuse_target
from ..tasks import CLASSES
from ..training.chains import start_chains
from ..training.distil import Teaching, start_student
from ..training.engines import LOCAL, open_engine
from ..training.extension import extend
from ..training.parallel import find_group, refuse_together
from ..training.session import began_here, start
from ..training.session import resume as resume_run
from ..training.twin import twin_recipe
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
from .options import takes
from .outcome import finish, finish_chains, say_imbalance, train_chains
from .train_captions import CaptionOptions, look_at_pictures
from .train_options import (
    BudgetOptions,
    ChainOptions,
    SentenceOptions,
    TextOptions,
    refuse_without_chains,
)

app = command_group()


@app.command(epilog=example("langevin train --text my.txt --out runs/my"))
@takes("text", TextOptions)
@takes("sentences", SentenceOptions)
@takes("pictures", CaptionOptions)
@takes("budget", BudgetOptions)
@takes("several", ChainOptions)
def train(
    recipe: Annotated[
        str | None, typer.Argument(help="a name from 'langevin recipes' or a TOML file")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="what to learn: classify for labelled sentences, caption for pictures"),
    ] = None,
    *,
    text: TextOptions,
    sentences: SentenceOptions,
    pictures: CaptionOptions,
    budget: BudgetOptions,
    several: ChainOptions,
    out: Annotated[Path | None, typer.Option(help="run folder (default: runs/NAME)")] = None,
    set_: Set = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="train the optimiser too, at equal cost, and compare")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on a recipe, on your own text file, labelled sentences, or captioned pictures."""
    check_data(task, recipe, text, sentences, pictures)
    overrides = [*(set_ or []), *text.settings(), *sentences.settings(), *pictures.settings()]
    loaded = load_named(recipe, task, sentences, pictures, [*overrides, *budget.settings()])
    own = text.text or sentences.labelled or pictures.captions
    target = out or Path("runs") / (own.stem if own and recipe is None else Path(recipe or "").stem)
    several.check()
    if several.chains is not None and compare:
        raise LangevinError("expected --compare or --chains, got both; compare one run")
    if several.chains is not None or compare:
        refuse_together("several chains" if several.chains else "--compare")
    is_first, goes_on = first_speaks(), began_here(target)
    if is_first and not goes_on:
        refuse_target(target, loaded, overwrite=overwrite)
        look_at_pictures(loaded, quiet or as_json)
    if several.chains is None:
        train_one(loaded, target, compare, overwrite, quiet, as_json)
    else:
        train_several(loaded, target, several, overwrite, quiet, as_json)


def check_data(
    task: str | None, recipe: str | None, text: TextOptions, sentences: SentenceOptions,
    pictures: CaptionOptions,
) -> None:  # fmt: skip
    """Refuse what does not go together, and nothing at all."""
    own, labelled = text.text, sentences.labelled
    if task is not None and task not in CLASSES:
        raise LangevinError(f"--task must be one of {', '.join(CLASSES)}, got {task!r}")
    pictures.check(task, recipe, {"--text": own, "--train": labelled})
    if recipe is None and own is None and labelled is None and not pictures.given:
        needed = (
            "--train FILE" if task == "classify" else "--text FILE, --task classify --train FILE "
            "or --task caption --captions FILE"
        )
        raise LangevinError(f"expected a recipe or {needed}, got none; see 'langevin recipes'")
    if own is not None and task == "classify":
        raise LangevinError(
            f"a classifier learns from labelled sentences, got --text {own}; pass them by --train"
        )
    if own is not None and labelled is not None:
        raise LangevinError(
            "expected either --text or --train, got both; a classifier learns from --train"
        )


def load_named(
    recipe: str | None, task: str | None, sentences: SentenceOptions, pictures: CaptionOptions,
    overrides: list[str],
) -> Recipe:  # fmt: skip
    """The recipe that was named, or that of the data."""
    usual = "text" if sentences.labelled is None else sentences.recipe
    named = recipe or ("captions" if pictures.given else usual)
    loaded = load_recipe(named, overrides)
    if task not in (None, loaded.task):
        raise LangevinError(
            f"expected a recipe for {task!r}, {named} is for {loaded.task!r}; leave --task out"
        )
    return loaded


def train_one(
    recipe: Recipe, target: Path, compare: bool, overwrite: bool, quiet: bool, as_json: bool
) -> None:
    beside = twin_target(target, recipe, overwrite=overwrite) if compare else None
    trainer = start(recipe, target, overwrite=overwrite)
    if first_speaks():
        say_imbalance(trainer.folder)
    twin = start(twin_recipe(trainer.recipe), beside, overwrite=overwrite) if beside else None
    finish(trainer, target, quiet, as_json, twin)


def train_several(
    recipe: Recipe, target: Path, several: ChainOptions, overwrite: bool, quiet: bool,
    as_json: bool,
) -> None:  # fmt: skip
    assert several.chains is not None
    with open_engine(several.on, [target]) as engine:
        folder = start_chains(
            recipe, target, several.chains, cpus=several.cpus, overwrite=overwrite
        )
        say_imbalance(folder)
        train_chains(folder, several.jobs, quiet, engine, several.gpus)
    finish_chains(folder, quiet, as_json)


def twin_target(target: Path, recipe: Recipe, *, overwrite: bool) -> Path:
    """The folder of the optimiser twin, beside that of the run; all that is wrong is said now."""
    twin = twin_recipe(recipe)
    beside = target.with_name(f"{target.name}-{twin.sampler.name}")
    refuse_target(beside, twin, overwrite=overwrite)
    return beside


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
