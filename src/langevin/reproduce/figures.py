"""The paper's figures from recorded numbers and run folders."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .. import uncertain
from ..captioning import Captioning, Search, caption_images
from ..classifying import Classifier
from ..data.image_features import ImageFeatures
from ..errors import LangevinError
from ..explain import explain_run
from ..report.explanation import draw_explanation
from ..report.figures import draw_collections, save_figure
from ..report.sentences import draw_landscape, draw_runs
from ..tasks.caption import CaptionTask
from ..workflow import Selection, open_run_task

SENTENCE = "the company said it expects to report a loss for the third quarter"
"""Of our own; the paper does not print the sentence that its Figure 3 is about in full."""


def recorded(results: Path, cell: str) -> dict[str, Any]:
    path = results / f"{cell}.json"
    if not path.is_file():
        raise LangevinError(f"expected recorded numbers of {cell} at {path}; run it first with 'langevin reproduce'")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def samples(runs: Path, results: Path, path: Path) -> None:
    """Figure 2: perplexity of each sample, and of the collections by their number of samples."""
    numbers = recorded(results, "ptb-small-random-sgld")
    test = numbers["test"]
    curves = {how: [math.exp(score) for score in scores] for how, scores in test["curve"].items()}
    single = [each["perplexity"] for each in test["each"]]
    save_figure(path, lambda axes: draw_collections(axes, curves | {"each sample alone": single}, score="perplexity"))


def words(runs: Path, results: Path, path: Path) -> None:
    """Figure 3: the words of a sentence under three samples and under the average."""
    draw_explanation(explain_run(runs / "ptb-small-successive-sgld", SENTENCE), path, 3)


def learning_curves(runs: Path, results: Path, path: Path) -> None:
    """Figure 5: training, validation and test error of the methods on TREC."""
    methods = ("rmsprop", "rmsprop-dropout", "psgld", "psgld-dropout")
    draw_runs(path, [uncertain.learning_curves(runs / f"trec-{method}") for method in methods])


def uncertainty(runs: Path, results: Path, path: Path) -> None:
    """Figure 6: the test sentences of TREC by t-SNE, the least certain circled."""
    _, land = uncertain.most_uncertain(Classifier(runs / "trec-psgld-dropout"), 10, states=True)
    assert land is not None
    draw_landscape(path, land, 10)


def captions(runs: Path, results: Path, path: Path) -> None:
    """Figure 4: the three best captions of one test image under two samples and under the average."""
    folder = runs / "flickr8k-psgld"
    run = Captioning.open(folder, Selection())
    task = open_run_task(run.folder)
    assert isinstance(task, CaptionTask)
    name = task.images["test"][0]
    values = task.features.take(torch.tensor([task.features.rows[name]]))
    (told,) = caption_images(run, ImageFeatures([name], values, "test"), Search(top=3), per_sample=2)
    columns = {f"sample at step {one['step']}": one["captions"] for one in told["per_sample"]}
    columns["average"] = told["captions"]

    def draw(axes: Any) -> None:
        axes.axis("off")
        axes.set_title(name)
        lines = [
            line for title, best in columns.items()
            for line in (title, *(f"   {c['log_prob']:6.2f}  {c['caption']}" for c in best), "")
        ]
        axes.text(0, 1, "\n".join(lines), va="top", family="monospace", fontsize=9)

    save_figure(path, draw, (7.0, 4.0))


FIGURES: dict[str, Callable[[Path, Path, Path], None]] = {
    "samples": samples, "words": words, "captions": captions, "learning-curves": learning_curves,
    "uncertainty": uncertainty,
}


def draw_figure(name: str, runs: Path, results: Path, path: Path) -> Path:
    FIGURES[name](runs, results, path)
    return path
