"""The texts: which they are, how they are split, and which other texts are foreign to them."""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from langevin.data.corpora import read_corpus, read_war_and_peace
from langevin.data.vocabulary import Vocabulary
from langevin.recipe import load_recipe
from langevin.tasks.language_model import LanguageModelTask

SCRATCH = Path("runs") / "alternatives"
DOCSTRINGS, PTB_TRAIN, PTB_HELD_OUT = 300_000, 190_000, 20_000
FOREIGN = 20_000
"""Tokens of a foreign text that are looked at."""


@dataclass(frozen=True)
class TextSet:
    """A text, and the budget and network that every arm has on it."""

    name: str
    corpus: Callable[[], str]
    level: str
    parts: tuple[float, float, float]
    epochs: float
    rows: int = 50
    window: int = 50
    hidden: int = 128
    layers: int = 1
    orders: tuple[int, ...] = (4, 6, 8, 10, 12, 14, 16, 18, 20)
    """Of the counts, to choose among."""
    extent: int = 200
    """Tokens of the windows that are told from foreign ones."""
    more: tuple[str, ...] = ()
    rates: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Peak rates to choose among, four for each optimiser."""

    def settings(self) -> list[str]:
        """Overrides of the recipe `text`, for the rivals and for ours."""
        return [
            f"corpus={self.corpus()}", f"level={self.level}", f"parts={list(self.parts)}",
            f"batch_size={self.rows}", f"window={self.window}", f"hidden={self.hidden}",
            f"layers={self.layers}", "dropout=0", *self.more,
        ]  # fmt: skip


@dataclass(frozen=True)
class Splits:
    """The tokens of one set, and what makes them into batches."""

    task: LanguageModelTask
    train: Tensor
    valid: Tensor
    test: Tensor
    foreign: dict[str, Tensor]

    @property
    def vocabulary(self) -> Vocabulary:
        return self.task.vocabulary

    @property
    def size(self) -> int:
        return len(self.vocabulary)


def open_set(chosen: TextSet, seed: int) -> Splits:
    """Its splits as `langevin train` cuts them."""
    recipe = load_recipe("text", [*chosen.settings(), f"seed={seed}"])
    task = LanguageModelTask(recipe)
    held = {name: whole(task, name) for name in ("train", "valid", "test")}
    return Splits(task, held["train"], held["valid"], held["test"],
                  foreign_to(chosen, task.vocabulary, held["test"]))


def whole(task: LanguageModelTask, name: str) -> Tensor:
    """All tokens of a split, in order."""
    batches = task.evaluated[name]
    return torch.cat([batches.sequence, batches.tail]).long()


def foreign_to(chosen: TextSet, vocabulary: Vocabulary, test: Tensor) -> dict[str, Tensor]:
    """Two texts: the set's own words in another order, and prose of another kind."""
    raw = vocabulary.decode(test[:FOREIGN].tolist())
    words = raw.split(b" ")
    random.Random(0).shuffle(words)
    other = docstrings() if chosen.name.startswith("war") else read_war_and_peace()[100_000:]
    texts = {"shuffled words": b" ".join(words), "other prose": other[: FOREIGN * 6]}
    return {name: vocabulary.encode(text)[:FOREIGN] for name, text in texts.items()}


def docstrings() -> bytes:
    """The docstrings of Python's standard library, file after file, as many as there is room
    for."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    left_out = {"test", "tests", "idlelib", "site-packages", "dist-packages", "lib2to3", "__pycache__"}
    pieces, size = list[bytes](), 0
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        if left_out & set(path.relative_to(folder).parts):
            continue
        for text in docstrings_of(path):
            pieces.append(text.encode() + b"\n\n")
            size += len(pieces[-1])
            if size > DOCSTRINGS:
                return b"".join(pieces)[:DOCSTRINGS]
    return b"".join(pieces)


def docstrings_of(path: Path) -> Iterator[str]:
    """Of the module, its classes and functions, in the order of the file."""
    try:
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in nodes:
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield text


def docstring_file() -> str:
    return kept("docstrings.txt", docstrings())


def ptb_file() -> str:
    """The first words of each published part of Penn Treebank, in one file."""
    corpus = read_corpus("ptb")
    sizes = {"train": PTB_TRAIN, "valid": PTB_HELD_OUT, "test": PTB_HELD_OUT * 2}
    pieces = []
    for name, size in sizes.items():
        left, lines = size, list[str]()
        for line in corpus[name].read().decode().splitlines():
            words = line.split()
            if left <= len(words) + 1:
                lines.append(" ".join(words[: left - 1]))
                break
            lines.append(" ".join(words))
            left -= len(words) + 1
        pieces.append("\n".join(lines) + "\n")
    return kept("ptb-190k.txt", "".join(pieces).encode())


def kept(name: str, text: bytes) -> str:
    """A file of this text in the scratch folder."""
    path = SCRATCH / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != text:
        path.write_bytes(text)
    return str(path.resolve())


BYTES = {"adam": (4e-3, 8e-3, 1.6e-2, 3.2e-2), "rmsprop": (8e-3, 1.2e-2, 1.6e-2, 2.4e-2),
         "sgd": (0.5, 1.0, 2.0, 4.0), "transformer": (1e-3, 2e-3, 4e-3, 8e-3)}
WORDS = {"adam": (2e-3, 4e-3, 8e-3, 1.6e-2), "rmsprop": (2e-3, 4e-3, 8e-3, 1.6e-2),
         "sgd": (0.5, 1.0, 2.0, 4.0), "transformer": (5e-4, 1e-3, 2e-3, 4e-3)}

SETS = {
    own.name: own
    for own in (
        TextSet("war-and-peace", lambda: "war_and_peace", "byte", (96, 2, 2), 1.6, rates=BYTES),
        TextSet("docstrings", docstring_file, "byte", (90, 5, 5), 10, rows=32, rates=BYTES),
        TextSet("ptb-190k", ptb_file, "word", (PTB_TRAIN, PTB_HELD_OUT, PTB_HELD_OUT * 2), 4,
                orders=(2, 3, 4, 5, 6), extent=50, rates=WORDS),
    )
}  # fmt: skip
