"""Stand-ins for the data sets that may not be shipped: same names and formats, texts of our own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from langevin.data.catalogue import DATASETS, File
from langevin.data.corpora import read_war_and_peace
from tests.sentences import questions

KINDS = {"place": "45", "person": "30", "thing": "12"}
"""Two of the six numbers of classes in TREC's files for each kind of question of ours."""
SIZES = {"train": 60_000, "valid": 4_000, "test": 4_000}
"""Words in the stand-in for Penn Treebank."""


def sentences() -> Iterator[str]:
    """Tolstoy's, lower-cased words of letters alone; the rarer ones unknown, as in the treebank."""
    text = read_war_and_peace().decode().lower()[:600_000]
    for line in text.replace("\r\n", " ").split("."):
        words = [word for word in line.split() if word.isalpha()]
        if words:
            yield " ".join(word if len(word) < 8 else "<unk>" for word in words)


def files() -> dict[str, bytes]:
    """Contents by the path below the folder of data."""
    found, lines = dict[str, bytes](), cycle(sentences())
    for split, size in SIZES.items():
        part, words = list[str](), 0
        while words < size:
            part.append(f" {next(lines)} \n")
            words += part[-1].count(" ")
        found[f"ptb/ptb.{split}.txt"] = "".join(part).encode()
    for split, count in {"train": 500, "test": 60}.items():
        pairs = [f"{KINDS[kind][place % 2]} {text}\n"
                 for place, (text, kind) in enumerate(questions(count, len(split)))]
        found[f"sentences/trec.{split}.txt"] = "".join(pairs).encode()
    words = sorted({word for text, _ in questions() for word in text.split()})[::2]
    name = "word_vectors/word2vec_googlenews_300d"
    found[f"{name}.vocab.tsv"] = "".join(f"{w}\t{row}\n" for row, w in enumerate(words)).encode()
    return found


def write_own_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins there, and their sums into the catalogue."""
    contents = files()
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    vectors = folder / "word_vectors" / "word2vec_googlenews_300d.npy"
    rows = contents["word_vectors/word2vec_googlenews_300d.vocab.tsv"].count(b"\n")
    np.save(vectors, np.random.default_rng(0).normal(size=(rows, 300)).astype(np.float16))
    for name in ("ptb", "trec", "word2vec_googlenews_300d"):
        known = DATASETS[name]
        inside = folder / (known.inside or known.name)
        summed = {key: with_sum(file, inside) for key, file in known.files.items()}
        monkeypatch.setitem(DATASETS, name, replace(known, files=summed))
    monkeypatch.setenv("LANGEVIN_DATA", str(folder))


def with_sum(file: File, folder: Path) -> File:
    raw = (folder / file.name).read_bytes()
    return replace(file, size=len(raw), sha256=hashlib.sha256(raw).hexdigest())
