"""A small written set of questions that a small network learns in seconds."""

from __future__ import annotations

import random
from pathlib import Path

PLACES, PEOPLE, THINGS = ["Rome", "Moscow", "Smolensk"], ["Tolstoy", "Kutuzov", "Homer"], ["snow", "bread", "iron"]

TINY_CLASSIFIER = [
    "hidden=8", "layers=1", "batch_size=10", "epochs=3", "burn_in=1", "sample_every=0.5", "patience=none", "threads=1",
    "vectors=none", "fold=none", "lr=0.01", "lr_schedule=constant", "sample=last", "by_size=false",
]


def questions(count: int = 120, seed: int = 0) -> list[tuple[str, str]]:
    """(text, label) pairs of three kinds, of lengths 4 to 12."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        kind = draw.choice(["place", "person", "thing"])
        head = {"place": "where is", "person": "who was", "thing": "what is"}[kind]
        name = draw.choice({"place": PLACES, "person": PEOPLE, "thing": THINGS}[kind])
        made.append((f"{head} {'so very ' * draw.randint(0, 4)}{name} ?", kind))
    return made


def write_questions(path: Path, pairs: list[tuple[str, str]] | None = None) -> Path:
    """As `label text` lines, or CSV where the name says so."""
    pairs = pairs or questions()
    if path.suffix == ".csv":
        path.write_text("label,text\n" + "".join(f'{label},"{text}"\n' for text, label in pairs))
    else:
        path.write_text("".join(f"{label} {text}\n" for text, label in pairs))
    return path
