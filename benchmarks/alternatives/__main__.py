"""The command: texts, sentences, or the tables of both."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import torch

from langevin.errors import LangevinError
from langevin.files import write_atomic
from langevin.process import prepare_process

from .records import Records

RESULTS, DOCS = Path("results"), Path("docs") / "alternatives.md"


def chosen(wanted: str | None, known: Iterable[str], what: str) -> list[str]:
    """Names that were asked for, or all."""
    names = list(known)
    asked = wanted.split(",") if wanted else names
    if strange := [name for name in asked if name not in names]:
        raise LangevinError(f"expected {what} among {', '.join(names)}, got {strange[0]!r}")
    return asked


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alternatives")
    parser.add_argument("what", choices=("texts", "sentences", "tables"))
    parser.add_argument("--sets", help="names, with commas between; default: all")
    parser.add_argument("--arms", help="the same")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=DOCS)
    given = parser.parse_args(arguments)
    seeds = [int(seed) for seed in given.seeds.split(",")]
    if given.what == "texts":
        from .text_sets import SETS
        from .texts import ARMS, run_texts

        sets = [SETS[name] for name in chosen(given.sets, SETS, "sets")]
        records = Records(given.results / "alternatives-texts.json")
        run_texts(sets, seeds, chosen(given.arms, ARMS, "arms"), records)
    elif given.what == "sentences":
        from .sentence_sets import SENTENCE_SETS
        from .sentences import CLASS_ARMS, run_sentences

        groups = [SENTENCE_SETS[name] for name in chosen(given.sets, SENTENCE_SETS, "sets")]
        told = Records(given.results / "alternatives-sentences.json")
        run_sentences(groups, seeds, chosen(given.arms, CLASS_ARMS, "arms"), told)
    else:
        from .tables import page

        held = [Records(given.results / f"alternatives-{kind}.json").held.values()
                for kind in ("texts", "sentences")]
        write_atomic(given.docs, page(*held).encode())


if __name__ == "__main__":
    prepare_process()
    torch.set_num_threads(1)
    main()
