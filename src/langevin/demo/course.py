"""All parts one after the other, in one folder; what is there already is not made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..posterior.scores import Result
from ..predict.results import Evaluation
from .foreign import ForeignTexts, read_foreign
from .sentences import LabelledSentences, join_linear_parts, judge_sentences, train_sentences
from .stages import Stages
from .texts import PAPER, continue_text, count_text, evaluate_text, train_text

TEXT, SENTENCES = "war-and-peace", "definitions"
PAGE, PICTURE = "demo.html", "surprise.svg"
"""What lies in the folder: two runs, the page, a picture of it."""
SHARES = {
    "training on War and Peace": 60.0, "counting its n-grams": 20.0, "reading unseen pages": 15.0,
    "reading foreign text": 8.0, "training on definitions": 40.0, "weighing linear parts": 10.0,
    "judging answers": 12.0,
}  # fmt: skip
"""The stages, and the seconds that each took on two cores."""
QUICK = {TEXT: ["epochs=0.3"], SENTENCES: ["epochs=3"]}
"""Settings of the recipes for a first look."""


@dataclass(frozen=True)
class DemoResult(Result):
    """All that was measured."""

    text: Evaluation
    paper: dict[str, float]
    """Test nll of the paper's samplers on the same book."""
    written: str
    foreign: ForeignTexts
    sentences: LabelledSentences
    runs: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"text": self.text.to_dict()}


def run_demo(out: Path, settings: Mapping[str, Sequence[str]], stages: Stages) -> DemoResult:
    """Train, or go on with what is there, then measure."""
    runs = {name: out / name for name in (TEXT, SENTENCES)}
    names = iter(SHARES)
    stages.enter(next(names))
    train_text(runs[TEXT], settings.get(TEXT, ()), stages)
    stages.enter(next(names))
    model = count_text(runs[TEXT], stages)
    stages.enter(next(names))
    evaluation = evaluate_text(model, stages)
    stages.enter(next(names))
    foreign, written = read_foreign(model, stages), continue_text(model)
    stages.enter(next(names))
    train_sentences(runs[SENTENCES], settings.get(SENTENCES, ()), stages)
    stages.enter(next(names))
    classifier = join_linear_parts(runs[SENTENCES], stages)
    stages.enter(next(names))
    return DemoResult(
        text=evaluation, paper=dict(PAPER), written=written, foreign=foreign,
        sentences=judge_sentences(classifier, stages),
        runs={name: str(folder) for name, folder in runs.items()},
    )  # fmt: skip
