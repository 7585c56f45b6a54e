"""The paper's figures: first the numbers behind each, which are kept, then the drawing of them.

What is kept in `results/figures/NAME.json` can be drawn again without the run folders that it was
taken from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from langevin.data.features import named_rows
from langevin.errors import LangevinError
from langevin.posterior.selection import Selection
from langevin.predict.captioning import BeamSettings, CaptionPosterior
from langevin.predict.load import open_as
from langevin.predict.load import open_posterior
from langevin.predict.language import LanguagePosterior
from langevin.predict.classification import ClassificationPosterior
from langevin.predict.sentence_map import map_sentences
from langevin.report.explanation import draw_explanation
from langevin.report.figures import draw_collections, draw_lines, draw_points, embed_2d, finish, save_figure
from langevin.report.sentences import draw_runs
from langevin.store.folder import RECIPE, RunFolder
from langevin.store.records import write_json
from langevin.store.samples import choose
from langevin.tasks.captioning import CaptionTask
from langevin.posterior.selection import EVERYTHING

from .numbers import read_result
from .targets import TARGETS

FOLDER = "figures"
"""Within the folder of results."""
SENTENCE = "the company said it expects to report a loss for the third quarter"
"""Of our own; the paper does not print the sentence that its Figure 3 is about in full."""
METHODS = ("rmsprop", "rmsprop-dropout", "psgld", "psgld-dropout")
CIRCLED = 10
"""Of the least certain sentences in Figure 6."""


def recorded(results: Path, cell: str) -> dict[str, Any]:
    path = results / f"{cell}.json"
    if not path.is_file():
        raise LangevinError(f"expected recorded numbers of {cell} at {path}; run it first with 'python -m paper'")
    return read_result(path)


def samples(runs: Path, results: Path) -> dict[str, Any]:
    """Figure 2: perplexity of each sample, and of the collections by their number of samples."""
    test = recorded(results, "ptb-small-random-sgld")["test"]
    curves = {how: [math.exp(score) for score in scores] for how, scores in test["curve"].items()}
    return {"each": [each["perplexity"] for each in test["each"]], "collections": curves}


def draw_samples(told: dict[str, Any], path: Path) -> None:
    each, collections = told["each"], told["collections"]

    def alone(axes: Any) -> None:
        draw_lines(axes, {"each sample alone": (range(1, len(each) + 1), each)})
        axes.set(xlabel="sample, in the order drawn", ylabel="perplexity")
        finish(axes)

    save_figure(path, alone, lambda axes: draw_collections(axes, collections, score="perplexity"), size=(9.0, 3.6))


def words(runs: Path, results: Path) -> dict[str, Any]:
    """Figure 3: the words of a sentence under three samples and under the average."""
    cell = "ptb-small-successive-sgld"
    posterior = open_as(LanguagePosterior, runs / cell, EVERYTHING)
    score = posterior.score(SENTENCE)
    tokens = score.tokens
    return {
        "run": cell, "text": SENTENCE, "steps": [sample.step for sample in posterior.draws],
        "tokens": [token.token for token in tokens], "averaged": [token.p for token in tokens],
        "each": [list(row) for row in zip(*(token.parts for token in tokens), strict=True)],
        "std": [token.std for token in tokens], "nll": score.nll,
    }


def draw_words(told: dict[str, Any], path: Path) -> None:
    each = [(f"step {step}", row) for step, row in zip(told["steps"], told["each"], strict=True)]
    draw_explanation(told["tokens"], [*choose(each, "thinned", min(3, len(each))), ("average", told["averaged"])], path)


def learning_curves(runs: Path, results: Path) -> dict[str, Any]:
    """Figure 5: training, validation and test error of the methods on TREC."""
    cells = [f"trec-{method}" for method in METHODS]
    return {"runs": [errors_along(runs / cell) | {"run": cell} for cell in cells]}


def errors_along(path: Path) -> dict[str, Any]:
    """Error in per cent on every split against epochs: of each stored sample, and of the running
    average.

    A run at temperature 0 has no posterior to average; `shown` says which of the two lines is its
    prediction.
    """
    posterior = open_posterior(path, Selection("forward"))
    if posterior.opened.folder and posterior.opened.folder.chains:
        raise LangevinError(f"expected one run in {path}, got several chains; name one of them")
    task, curves, temperature = posterior.data, {}, None
    for split in task.splits:
        found = posterior.evaluate(split, curve=True)
        assert found.curve is not None
        temperature = found.temperature
        curves[split] = {"single": [100 * (one.scores.error or 0) for one in found.each],
                         "average": [100 * error for error in found.curve["forward"]]}
    return {
        "run": str(path), "title": posterior.recipe.title, "temperature": temperature,
        "shown": "average" if temperature else "single", "burn_in": posterior.recipe.run.burn_in,
        "epochs": [sample.step / task.batches_per_epoch for sample in posterior.draws], "curves": curves,
    }


def uncertainty(runs: Path, results: Path) -> dict[str, Any]:
    """Figure 6: the test sentences of TREC by t-SNE, the least certain circled and listed."""
    cell = "trec-psgld-dropout.full"
    posterior = open_as(ClassificationPosterior, runs / cell)
    found = map_sentences(posterior, CIRCLED)
    return {
        "run": cell, "split": "test", "statistic": found.statistic, "samples": len(posterior),
        "skipped": posterior.opened.chosen.skipped, "sentences": [one.to_dict() for one in found.listed],
        "points": embed_2d(found.states).tolist(), "labels": found.labels.tolist(),
        "scores": found.scores.tolist(), "names": found.names,
    }


def draw_uncertainty(told: dict[str, Any], path: Path) -> None:
    points, labels, scores = (torch.tensor(told[key]) for key in ("points", "labels", "scores"))
    save_figure(path, lambda axes: draw_points(axes, points, labels, told["names"], scores, CIRCLED), size=(7.0, 5.0))


def captions(runs: Path, results: Path) -> dict[str, Any]:
    """Figure 4: the three best captions of one test image under two samples and under the
    average."""
    run = open_as(CaptionPosterior, runs / "flickr8k-psgld")
    task = run.data
    assert isinstance(task, CaptionTask)
    images = named_rows(task.features, task.images["test"][:1])
    (found,) = run.describe(images, BeamSettings(top=3, length_power=0.0), per_sample=2)
    told = found.to_dict()
    return told | {"samples": len(run)}


def draw_captions(told: dict[str, Any], path: Path) -> None:
    columns: dict[str, list[dict[str, Any]]] = {}
    for one in told["per_sample"]:
        # figures that were kept before have a list for each sample
        own = one.get("captions", [one])
        columns.setdefault(f"sample of step {one['step']}", []).extend(own)
    columns[f"average of {told['samples']}"] = told["captions"]
    lines = [
        line for title, best in columns.items()
        for line in ("", title, *(f"   {c.get('log_p', c.get('log_prob')):6.2f}  {c['caption']}" for c in best))
    ]

    def draw(axes: Any) -> None:
        axes.axis("off")
        axes.set_title(told["image"], loc="left")
        axes.text(0, 1, "\n".join(lines), va="top", family="monospace", fontsize=9)

    save_figure(path, draw, size=(7.0, 0.6 + 0.16 * len(lines)))


@dataclass(frozen=True)
class Figure:
    """How its numbers are taken from run folders and recorded results, and how they are drawn."""

    gather: Callable[[Path, Path], dict[str, Any]]
    draw: Callable[[dict[str, Any], Path], None]
    needed: tuple[str, ...]
    """Of the numbers that are kept."""


FIGURES = {
    "samples": Figure(samples, draw_samples, ("each", "collections")),
    "words": Figure(words, draw_words, ("tokens", "steps", "each", "averaged", "std")),
    "captions": Figure(captions, draw_captions, ("image", "captions", "per_sample", "samples")),
    "learning-curves": Figure(learning_curves, lambda told, path: draw_runs(path, told["runs"]), ("runs",)),
    "uncertainty": Figure(uncertainty, draw_uncertainty, ("points", "labels", "scores", "names")),
}


def maker(cell: str, runs: Path, results: Path) -> dict[str, Any]:
    """Recipe, seed and commit of a run that a figure shows."""
    if not (runs / cell / RECIPE).is_file():
        told = recorded(results, cell)
        return {key: told[key] for key in ("recipe", "seed", "commit") if key in told}
    folder = RunFolder(runs / cell)
    recipe = folder.recipe
    return {"recipe": recipe.what_is_computed(), "seed": recipe.run.seed, "commit": folder.origin.commit}


def kept_numbers(name: str, results: Path) -> Path:
    return results / FOLDER / f"{name}.json"


def is_drawn(name: str, results: Path) -> bool:
    return kept_numbers(name, results).is_file()


def draw_figure(name: str, runs: Path, results: Path, *, quick: bool = False) -> Path:
    """Take the numbers of a figure from the runs unless they are kept already, and draw them
    beside."""
    numbers = kept_numbers(name, results)
    if not is_drawn(name, results):
        numbers.parent.mkdir(parents=True, exist_ok=True)
        about = {"taken_from": {cell: maker(cell, runs, results) for cell in TARGETS[name].cells}}
        write_json(numbers, FIGURES[name].gather(runs, results) | about | ({"quick": True} if quick else {}))
    picture = numbers.with_suffix(".quick.png" if quick else ".png")
    FIGURES[name].draw(read_result(numbers, FIGURES[name].needed), picture)
    return picture
