"""The page that goes with an exported model: a model card as the Hugging Face hub reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

PIPELINES = {"language-model": "text-generation", "classify": "text-classification", "caption": "image-to-text"}
COUNTS = ("tokens", "sentences")
USE = {
    "language-model": 'model.score("It was a clear night.")      # nats per token, and how sure of each\n'
                      'model.next("It was a clear ", top=5)      # what may follow, with its spread over the samples\n'
                      'model.generate("It was a clear ", 100)',
    "classify": 'model.predict(["..."])   # label, probabilities, aleatoric and epistemic uncertainty',
    "caption": "model.caption(features)   # [images, width] → captions with the probability of every word",
}


def model_card(config: dict[str, Any], name: str, recipe: str, commands: Sequence[str]) -> str:
    """YAML front matter, how to use it, how good it is, how it was made."""
    return "\n".join([*front_matter(config, name), "", *body(config, name, recipe, commands), ""])


def front_matter(config: dict[str, Any], name: str) -> list[str]:
    """JSON strings are YAML strings: nothing that a title may hold can break out."""
    measured = config["metrics"]
    lines = [
        "---", "library_name: langevin", f"pipeline_tag: {PIPELINES[config['task']]}", "tags:", "- bayesian",
        "- stochastic-gradient-mcmc", f"- {config['model']['cell']}", "- uncertainty",
    ]
    if measured:
        corpus = json.dumps(config["recipe"]["data"]["corpus"])
        lines += [
            "model-index:", f"- name: {json.dumps(name)}", "  results:", "  - task:",
            f"      type: {PIPELINES[config['task']]}", "    dataset:", f"      name: {corpus}",
            f"      type: {corpus}", f"      split: {measured['split']}", "    metrics:",
        ]
        for metric, value in measured["averaged"].items():
            if metric not in COUNTS:
                lines += [f"    - type: {metric}", f"      value: {value:.6g}"]
    return [*lines, "---"]


def body(config: dict[str, Any], name: str, recipe: str, commands: Sequence[str]) -> list[str]:
    m, sampler = config["model"], config["sampler"]
    n = config["samples"]
    drawn = f"{n} sample{'s' if n > 1 else ''} of the weights"
    return [
        f"# {name}", "",
        config["title"] or f"A {config['task']} network.", "",
        f"{drawn} of a {m['layers']}×{m['hidden']} {m['cell'].upper()}, drawn by {sampler['name']} at temperature "
        f"{sampler['temperature']:g}, stored as {config['precision']}. Predictions are averages of probabilities over "
        f"the samples. Made with langevin {config['langevin']}.", "",
        "## Use", "", "```python", "import langevin", "", 'model = langevin.load("FOLDER")',
        USE[config["task"]], "```", "",
        "## How good it is", "", *results(config), "",
        "## How it was made", "", "```", *commands, "```", "",
        "The run's `recipe.toml`; the training data are not part of this folder:", "", "```toml", recipe.strip(), "```",
    ]


def results(config: dict[str, Any]) -> list[str]:
    """A table of what was measured, and what half precision did."""
    measured = config["metrics"]
    if not measured:
        return ["Not measured."]
    names = list(measured["averaged"])
    rows = {"last sample": measured["single"], f"average of {measured['samples']}": measured["averaged"]}
    lines = [f"On {config['recipe']['data']['corpus']}, split {measured['split']} ({measured['source']}):", "",
             f"| model | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(number(values[n]) for n in names)} |" for row, values in rows.items()]
    if config["precision"] == "float16":
        full = measured.get("averaged_float32")
        lines += ["", half_precision(measured["averaged"]["nll"], full["nll"]) if full else
                  "The effect of storing the samples as float16 was not measured."]
    return lines


def half_precision(half: float, full: float) -> str:
    return f"Stored as float16, half the size: NLL {half:.6f}; as float32 {full:.6f} ({half - full:+.2e})."


def number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
