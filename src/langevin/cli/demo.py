"""The main job in three minutes: an optimiser and its sampling twin on the embedded text, compared."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..predict.language import LanguagePosterior
from ..predict.load import open_as
from ..recipe import load_recipe
from ..report.terminal import table
from ..store.folder import RECIPE, RunFolder
from ..training.loop import Trainer
from ..posterior.selection import Selection
from ..predict.load import open_posterior
from ..report.tables import gain_in_words
from ..training.session import resume, start
from ..posterior.selection import EVERYTHING

PROMPT = "The French "


@dataclass(frozen=True)
class DemoResult:
    numbers: dict[str, Any]
    page: RenderableType


def run_demo(out: Path, overrides: list[str], train: Callable[[Trainer, str], None]) -> DemoResult:
    """Train both (or go on with what is there), evaluate on the test split, write some text."""
    folders = {"optimiser": out / "optimiser", "sampler": out / "sampler"}
    twin = ["name=rmsprop", "temperature=none", "prior_var=none"]
    for label, folder in folders.items():
        if (folder / RECIPE).exists():
            trainer = resume(folder)
        else:
            trainer = start(load_recipe("demo", [*overrides, *(twin if label == "optimiser" else [])]), folder)
        if not trainer.finished:
            train(trainer, f"{label:9}")
    results = {label: open_posterior(folder, EVERYTHING).evaluate("test")
               for label, folder in folders.items()}
    text = write(folders["sampler"])
    nll = {
        "optimiser, last weights": results["optimiser"].last.nll,
        "sampler, last sample": results["sampler"].last.nll,
        "sampler, average": results["sampler"].averaged.nll,
        "optimiser, average": results["optimiser"].averaged.nll,
    }
    samples = results["sampler"].samples
    rows = [
        ("RMSprop, the last weights", f"{nll['optimiser, last weights']:.4f}"),
        (f"RMSprop, {samples} snapshots averaged", f"{nll['optimiser, average']:.4f}"),
        ("pSGLD, the last sample", f"{nll['sampler, last sample']:.4f}"),
        (f"pSGLD, {samples} samples averaged", f"{nll['sampler, average']:.4f}"),
    ]
    page = Group(
        table("War and Peace, unseen text: negative log-likelihood in nats per byte", ("model", "nll"), rows),
        Text(f"pSGLD: {gain_in_words(results['sampler'])}"),
        Text(f"\n{textwrap.fill(text, 100)}\n", style="italic"),
        Text(
            f"The runs are in {out}. Next:\n"
            f"  langevin show {folders['sampler']}\n"
            f"  langevin evaluate {folders['sampler']} --select backward --samples 5\n"
            f"  langevin generate {folders['sampler']} --prompt 'Prince Andrew '\n"
            f"  langevin train --text FILE    on a text of your own"
        ),
    )
    runs = {label: str(folder) for label, folder in folders.items()}
    return DemoResult({"nll": nll, "samples": samples, "text": text, "runs": runs}, page)


def write(path: Path) -> str:
    """Some sentences by the averaged model."""
    posterior = open_as(LanguagePosterior, path, Selection("backward", min(5, len(RunFolder(path).store()))))
    text = "".join(posterior.generate(PROMPT, 350, softmax_temperature=0.7))
    return PROMPT + text.replace("\r\n", " ")
