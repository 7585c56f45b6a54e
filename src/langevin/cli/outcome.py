"""Training to the end, and what is said then: the scores and what to type next."""

from __future__ import annotations

import json
import os
from pathlib import Path

import typer
from rich.console import Group
from rich.text import Text

from ..predict.encoded import imbalance
from ..predict.load import open_posterior
from ..predict.twin import TwinGain, compare_with_twin
from ..report.chains import chains_table
from ..report.progress import Bars, ChainsProgress, TrainingProgress
from ..report.summary import run_summary
from ..report.tables import cell, gain_in_words, heading, shown_number, twin_in_words
from ..report.terminal import duration, messages, screen, table
from ..store.folder import RunFolder
from ..training.chains import resume_chains
from ..training.engines import Engine
from ..training.jobs import PARENT
from ..errors import Interrupted
from ..training.loop import Trainer
from ..training.members import add_wanted_members
from ..training.session import train_until_done
from ..store.manifest import Choice
from ..store.linear_members import PoolRecord
from ..store.members import COUNTED, MembersRecord
from ..tasks import Task
from ..tasks.choice import choose_by_validation

NEXT = {
    "language-model": ("generate",),
    "classify": ("decide", "classify"),
    "caption": ("caption",),
}
"""What to offer after training, by task."""
Joined = MembersRecord | PoolRecord | None
"""What is known of members beside the samples."""


def train_with_progress(trainer: Trainer, label: str, quiet: bool = False) -> None:
    with TrainingProgress(label, quiet) as progress:
        train_until_done(trainer, progress)


def train_to_end(trainer: Trainer, folder: Path, quiet: bool) -> None:
    """Or to where it is stopped, and say how to go on."""
    if trainer.finished:
        done = f"{folder} is finished already: {trainer.step} steps, {len(trainer.store)} samples"
        messages.print(done, soft_wrap=True)
    else:
        try:
            train_with_progress(trainer, folder.name, quiet)
        except Interrupted:
            messages.print(
                f"stopped at step {trainer.step} of {trainer.pace.total}; "
                f"go on with: langevin resume {folder}",
                soft_wrap=True,
            )
            raise typer.Exit(130) from None
    if trainer.pace.turned is not None:
        turned = trainer.pace.turned / trainer.task.batches_per_epoch
        messages.print(
            f"validation turned at epoch {turned:.3g}: the rate fell from there, and training "
            f"stopped at epoch {trainer.step / trainer.task.batches_per_epoch:.3g} of "
            f"{trainer.recipe.run.epochs:g}",
            soft_wrap=True,
        )


def finish(
    trainer: Trainer, folder: Path, quiet: bool, as_json: bool, twin: Trainer | None = None
) -> None:
    """Train to the end and say what came out and what to type next; a twin is trained beside it."""
    if trainer.group.number > 0:  # the first does the rest
        return train_as_others(trainer)
    train_to_end(trainer, folder, quiet)
    best = choose_collection(trainer.folder, quiet or as_json)
    members = join_members(trainer.folder, quiet or as_json)
    summary = run_summary(trainer.folder)
    compared = train_twin(trainer, twin, quiet or as_json) if twin else None
    if as_json:
        print(json.dumps(summary | ({"twin": compared.to_dict()} if compared else {})))
        return
    screen.print(outcome_table(trainer, folder, best, members))
    say_gain(folder, quiet, trainer.task)
    if compared:
        screen.print(twin_in_words(compared), soft_wrap=True)
    say_next(folder, "evaluate", *NEXT[trainer.task.name], "show")


def train_twin(trainer: Trainer, twin: Trainer, quiet: bool) -> TwinGain:
    """The optimiser of a finished run, trained, and both on validation."""
    train_to_end(twin, twin.folder.path, quiet)
    with Bars(quiet) as progress:
        ours, other = (open_posterior(each.folder.path) for each in (trainer, twin))
        ours.data = trainer.task  # which need not be read again
        return compare_with_twin(ours, other, progress=progress)


def train_as_others(trainer: Trainer) -> None:
    try:
        train_until_done(trainer, lambda _: None)
    except Interrupted:
        raise typer.Exit(130) from None


def outcome_table(
    trainer: Trainer, folder: Path, best: Choice | None, members: Joined
) -> Group:
    """What validation says of the samples, of their average, and of what joined them."""
    last = next(line for line in reversed(trainer.history) if line.average)
    score = trainer.task.score
    rows = [
        ("last sample", cell(last.valid, score)),
        (f"average of {trainer.running.count} samples", cell(last.average or {}, score)),
    ]
    if best:
        named = f"best collection: {best.how}, {best.samples} samples"
        rows.append((named, shown_number(score, float(best.score))))
    title = f"{folder}: validation after {duration(trainer.seconds)}"
    return table(title, ("model", heading(score)), [*rows, *members_rows(members, score)])


def choose_collection(folder: RunFolder, quiet: bool) -> Choice | None:
    """Which samples validation prefers; None of classifiers (see `posterior.selection`) and of one
    sample."""
    samples = folder.store().samples
    if (
        folder.recipe.task == "classify" or len(samples) == 1 or PARENT in os.environ
    ):  # chains choose together
        return None
    try:
        with Bars(quiet) as progress:
            return choose_by_validation(folder, samples, progress=progress)
    except KeyboardInterrupt:
        messages.print(
            f"trained; stopped while choosing which samples to average: all, until "
            f"'langevin resume {folder.path}' chooses",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def join_members(folder: RunFolder, quiet: bool) -> Joined:
    """What the recipe wants beside the samples; beside those of chains once."""
    if PARENT in os.environ:
        return None
    try:
        with Bars(quiet) as progress:
            return add_wanted_members(folder, progress)
    except KeyboardInterrupt:
        messages.print(
            f"trained; stopped while other members joined the samples, which 'langevin resume "
            f"{folder.path}' does",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def members_rows(members: Joined, score: str = "nll") -> list[tuple[str, str]]:
    """Of the table of a finished run: the other members, and the pool."""
    if members is None:
        return []
    shares = ", ".join(f"{name} {weight:.2f}" for name, weight in members.weights.items())
    if isinstance(members, PoolRecord):
        scores = members.nll if score == "nll" else members.error
        shown = {name: shown_number(score, value) for name, value in scores.items()}
        parts = [(f"linear part over {name}", shown[name]) for name in members.files]
        return [*parts, (f"pool ({shares})", shown["pool"])]
    equal = "" if members.weighed else f"; equal, as {members.tokens} tokens tell too little"
    return [
        (f"counts of up to {members.order} tokens", f"{members.nll[COUNTED]:.4f}"),
        (f"pool ({shares}{equal})", f"{members.nll['pool']:.4f}"),
    ]


def train_chains(
    folder: RunFolder, jobs: int | None, quiet: bool, engine: Engine, gpus: float | None
) -> None:
    """Train all chains to the end, each in a process of its own, here or elsewhere."""
    try:
        with ChainsProgress(folder, quiet) as progress:
            trained = resume_chains(folder, jobs, progress, engine, gpus)
    except KeyboardInterrupt:
        messages.print(f"stopped; go on with: langevin resume {folder.path}", soft_wrap=True)
        raise typer.Exit(130) from None
    if not trained:
        messages.print(
            f"{folder.path} is finished already: {len(folder.store())} samples", soft_wrap=True
        )


def finish_chains(folder: RunFolder, quiet: bool, as_json: bool) -> None:
    """Say what came out of chains that are trained, and what is next."""
    choose_collection(folder, quiet or as_json)
    members = join_members(folder, quiet or as_json)
    if as_json:
        print(json.dumps(run_summary(folder)))
        return
    screen.print(chains_table(folder))
    if members:
        screen.print(
            table(f"{folder.path}: validation", ("model", "nll (nats)"), members_rows(members))
        )
    say_gain(folder.path, quiet)
    say_next(folder.path, "evaluate", *NEXT[folder.recipe.task], "diagnose", "show")


def say_imbalance(folder: RunFolder) -> None:
    """Of a classifier whose classes are far from equally frequent."""
    said = imbalance(folder.facts) if folder.recipe.task == "classify" else None
    if said:
        messages.print(Text(said, style="yellow"), soft_wrap=True)


def say_gain(folder: Path, quiet: bool, task: Task | None = None) -> None:
    """Did sampling help? On validation, of the samples that commands will average."""
    if PARENT in os.environ:  # the chains are told of together
        return
    with Bars(quiet) as progress:
        posterior = open_posterior(folder, progress=progress)
        if task is not None:
            posterior.data = task  # which need not be read again
        result = posterior.evaluate("valid", progress=progress)
    for said in (gain_in_words(result), result.verdict):
        if said:
            screen.print(said, soft_wrap=True)


def say_next(folder: Path, *commands: str) -> None:
    screen.print(
        Text("next: " + "   ".join(f"langevin {command} {folder}" for command in commands)),
        soft_wrap=True,
    )
