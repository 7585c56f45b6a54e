"""BLEU, METEOR, ROUGE-L and CIDEr of captions by the COCO evaluation code (`pycocoevalcap`), and
its results file.

METEOR and COCO's tokeniser (Stanford's PTB tokeniser) are Java programs. Without a working Java the
other metrics are still computed, on words told apart by white space; the result says so, because
the numbers then differ a little. Without the package there are none, and the result says why.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..files import write_atomic
from .java import JavaFailed, Lines, meteor_score, ptb_tokens

METRICS = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "meteor", "rouge_l", "cider")

GET_JAVA = (
    "install a Java runtime, version 8 or later (Debian and Ubuntu: apt install "
    "default-jre-headless; elsewhere: https://adoptium.net), and see that `java -version` runs"
)

SCORERS = {
    "Bleu": "bleu.bleu",
    "Rouge": "rouge.rouge",
    "Cider": "cider.cider",
    "Meteor": "meteor.meteor",
}
"""Classes of the COCO code and their modules."""


@dataclass(frozen=True)
class CocoScores:
    """The metrics that could be computed, between 0 and 1 but for CIDEr (0 to 10)."""

    metrics: dict[str, float]
    missing: dict[str, str]
    """Metric → why it is not there and how to get it."""
    tokenizer: str
    """"ptb": COCO's own. "plain": lower case, split at white space, COCO's punctuation marks left
    out. "none": without the package."""
    notes: tuple[str, ...]
    """What a reader of the numbers must know; empty if they are what the COCO server would give."""


def evaluate_captions(
    references: Mapping[Any, Sequence[str]], captions: Mapping[Any, str]
) -> CocoScores:
    """Score one caption per image against the references of the same images.

    CIDEr weighs words by how many of *these* images have them in a reference: it means something
    over a whole test set, little over a handful of images, and is 0 for a single one.
    """
    names = _matched(references, captions)
    try:
        scorers = {name: _from_package(module, name) for name, module in SCORERS.items()}
        marks = frozenset(_from_package("tokenizer.ptbtokenizer", "PUNCTUATIONS"))
    except ImportError as error:
        why = f'the COCO metrics need pycocoevalcap ({error}); pip install "langevin[caption]"'
        return CocoScores({}, dict.fromkeys(METRICS, why), "none", ())
    told, given = [list(references[name]) for name in names], [[captions[name]] for name in names]
    missing: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    tokenizer = "ptb"
    try:
        told, given = ptb_tokens(told, marks), ptb_tokens(given, marks)
    except JavaFailed as problem:
        told, given, tokenizer = plain_tokens(told, marks), plain_tokens(given, marks), "plain"
        missing["meteor"] = f"METEOR is a Java program: {problem}; {GET_JAVA}"
        notes = (
            f"plain tokeniser in place of COCO's, which needs Java too ({problem}): the numbers "
            f"differ a little",
        )
    if not any(line for lines in told for line in lines):
        raise LangevinError(
            "expected references with words in them, got none but empty ones; check the caption "
            "file"
        )
    metrics = _scores(scorers, dict(enumerate(told)), dict(enumerate(given)))
    if tokenizer == "ptb":
        try:
            metrics["meteor"] = meteor_score(scorers["Meteor"], told, given)
        except JavaFailed as problem:
            missing["meteor"] = (
                f"Java runs, but METEOR does not: {problem}; it wants 2 GB of memory"
            )
    return CocoScores(
        {name: metrics[name] for name in METRICS if name in metrics}, missing, tokenizer, notes
    )


def write_coco_results(path: Path, captions: Mapping[Any, str]) -> None:
    """The COCO results format, [{"image_id": …, "caption": …}], whole or not at all."""
    rows = [{"image_id": name, "caption": caption} for name, caption in captions.items()]
    write_atomic(path, (json.dumps(rows, ensure_ascii=False, indent=0) + "\n").encode())


def _matched(
    references: Mapping[Any, Sequence[str]], captions: Mapping[Any, str]
) -> list[Hashable]:
    """The images in the order of the references, each with a caption and at least one reference."""
    if not references:
        raise LangevinError("expected captions of at least one image, got none")
    for problem, names in (
        ("have no caption", references.keys() - captions.keys()),
        ("have a caption and no references", captions.keys() - references.keys()),
        (
            "have an empty list of references",
            {name for name, told in references.items() if not len(told)},
        ),
    ):
        if names:
            example = min(names, key=str)
            raise LangevinError(
                f"expected one caption and at least one reference for each image, got "
                f"{len(names)} images that {problem} (one is {example}); score the images that have both"
            )
    return list(references)


def _from_package(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"pycocoevalcap.{module}"), name)


def plain_tokens(captions: Sequence[Sequence[str]], marks: frozenset[str]) -> Lines:
    """Lower case, split at white space, without the punctuation marks that COCO leaves out."""
    return [
        [" ".join(w for w in line.lower().split() if w not in marks) for line in lines]
        for lines in captions
    ]


def _scores(
    scorers: Mapping[str, Any], told: dict[int, list[str]], given: dict[int, list[str]]
) -> dict[str, float]:
    bleu, _ = scorers["Bleu"](4).compute_score(told, given, verbose=0)
    metrics = {f"bleu_{n + 1}": float(value) for n, value in enumerate(bleu)}
    for name in ("Rouge", "Cider"):
        value, _ = scorers[name]().compute_score(told, given)
        metrics["rouge_l" if name == "Rouge" else "cider"] = float(value)
    return metrics
