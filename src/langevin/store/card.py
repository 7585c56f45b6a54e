"""The page that goes with an exported model: a model card as the Hugging Face hub reads it."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .export import ExportConfig, ExportMetrics
from .folder import RECIPE, RunFolder

PIPELINES = {
    "language-model": "text-generation", "classify": "text-classification",
    "caption": "image-to-text",
}
COUNTS = ("tokens", "sentences")
COUNTS_TELL = ("The folder also holds n-gram counts of the training text. They contain the text: who "
               "has them can read most of it. Share them only as you would share the text.")
USE = {
    "language-model": 'model.score("It was a clear night.")   # nats per token, how sure of each\n'
                      'model.next("It was a clear ", top=5)   # what may follow, with its spread\n'
                      '"".join(model.generate("It was a clear ", 100))',
    "classify": 'model.predict(["..."])   # label, probabilities, two kinds of uncertainty',
    "caption": "model.caption(features)   # [images, width] → captions, with p of every word",
}


def model_card(config: ExportConfig, name: str, recipe: str, commands: Sequence[str]) -> str:
    """YAML front matter, how to use it, how good it is, how it was made."""
    return "\n".join([*front_matter(config, name), "", *body(config, name, recipe, commands), ""])


def front_matter(config: ExportConfig, name: str) -> list[str]:
    """JSON strings are YAML strings: nothing that a title may hold can break out."""
    pipeline, measured = PIPELINES[config.task], config.metrics
    lines = [
        "---", "library_name: langevin", f"pipeline_tag: {pipeline}", "tags:", "- bayesian",
        "- stochastic-gradient-mcmc", f"- {config.model['cell']}", "- uncertainty",
    ]
    if measured:
        corpus = json.dumps(config.recipe["data"]["corpus"])
        lines += [
            "model-index:", f"- name: {json.dumps(name)}", "  results:", "  - task:",
            f"      type: {pipeline}", "    dataset:", f"      name: {corpus}",
            f"      type: {corpus}", f"      split: {measured.split}", "    metrics:",
        ]
        for metric, value in measured.averaged.items():
            if metric not in COUNTS:
                lines += [f"    - type: {metric}", f"      value: {value:.6g}"]
    return [*lines, "---"]


def body(config: ExportConfig, name: str, recipe: str, commands: Sequence[str]) -> list[str]:
    m, sampler, n = config.model, config.sampler, config.samples
    drawn = f"{n} sample{'s' if n > 1 else ''} of the weights"
    return [
        f"# {name}", "",
        config.title or f"A {config.task} network.", "",
        f"{drawn} of a {m['layers']}×{m['hidden']} {m['cell'].upper()}, drawn by "
        f"{sampler['name']} at temperature {sampler['temperature']:g}, stored as "
        f"{config.precision}. Predictions are averages of probabilities over the samples. Made "
        f"with langevin {config.langevin}.", "",
        "## Use", "", "```python", "import langevin", "", 'model = langevin.load("FOLDER")',
        USE[config.task], "```", "", *([COUNTS_TELL, ""] if config.counts else []),
        "## How good it is", "", *results(config), "",
        "## How it was made", "", "```", *commands, "```", "",
        f"The run's `recipe.toml`; the training data are not part of this folder"
        f"{', but for what the counts tell' if config.counts else ''}:", "",
        "```toml", recipe.strip(), "```",
    ]


def results(config: ExportConfig) -> list[str]:
    """A table of what was measured, and what half precision did."""
    measured = config.metrics
    if not measured:
        return ["Not measured."]
    names = list(measured.averaged)
    rows = {"last sample": measured.last, f"average of {measured.samples}": measured.averaged}
    corpus = config.recipe["data"]["corpus"]
    lines = [f"On {corpus}, split {measured.split} ({measured.source}):", "",
             f"| model | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(number(values[n]) for n in names)} |"
              for row, values in rows.items()]
    if config.precision == "float16":
        lines += ["", half_precision(measured) or
                  "The effect of storing the samples as float16 was not measured."]
    return lines


def half_precision(measured: ExportMetrics | None) -> str:
    """What rounding did to the score, where it was measured."""
    if measured is None or measured.averaged_float32 is None:
        return ""
    half, full = measured.averaged["nll"], measured.averaged_float32["nll"]
    return (f"Stored as float16, half the size: NLL {half:.6f}; as float32 {full:.6f} "
            f"({half - full:+.2e}).")


def number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def command(*words: str, **options: object) -> str:
    """A command of ours as a shell takes it; None is left out, True a switch."""
    arguments = [word for name, value in options.items() if value is not None
            for word in (f"--{name.replace('_', '-')}", *(() if value is True else (str(value),)))]
    return shlex.join(["langevin", *words, *arguments])


def training_command(folder: RunFolder, run: str) -> str:
    """How the run was made: on its recipe, in so many chains, or by a teacher.

    A teacher is named without the path around it; samples count for each of its chains.
    """
    teacher, recipe = folder.origin.teacher, folder.recipe
    if teacher is None:
        return command("train", RECIPE, chains=len(folder.chains) or None)
    of_each = max(Counter(sample.chain for sample in teacher.samples).values())
    return command(
        "distill", Path(teacher.run).name, out=run, select=teacher.select,
        samples=None if teacher.select == "best" else of_each, discard=teacher.discard,
        hidden=recipe.model.hidden, epochs=recipe.run.epochs, per_row=teacher.per_row,
        data_weight=teacher.data_weight, generated=teacher.generated,
    )
