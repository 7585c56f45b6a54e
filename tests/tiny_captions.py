"""A tiny captioned data set, written to disk: the features say which animal and what it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from langevin.recipe import Recipe, load_recipe

ANIMALS, ACTS = ("dog", "cat", "horse"), ("runs", "sleeps", "jumps")
WIDTH = 12
COUNTS = {"train": 27, "dev": 9, "test": 9}
SHORT = [
    "hidden=16", "batch_size=8", "min_count=2", "epochs=3", "burn_in=1", "sample_every=0.5", "threads=1", "lr=0.02",
]


def write_tiny(folder: Path) -> Path:
    """Token lines, three image lists, features.npy and its names; returns the token file."""
    rng = np.random.default_rng(0)
    lines, names, rows = [], [], []
    for split, count in COUNTS.items():
        listed = [f"{split}{number}.jpg" for number in range(count)]
        (folder / f"tiny.{split}Images.txt").write_text("\n".join(listed) + "\n")
        for number, name in enumerate(listed):
            animal, act = ANIMALS[number % 3], ACTS[number // 3 % 3]
            texts = [f"A {animal} {act} .", f"The big {animal} {act} on the grass , it seems .", f"{animal} {act}"]
            lines += [f"{name}#{i}\t{text}" for i, text in enumerate(texts)]
            row = 0.1 * rng.standard_normal(WIDTH)
            row[number % 3] += 1
            row[3 + number // 3 % 3] += 1
            names.append(name)
            rows.append(row)
    (folder / "tiny.token.txt").write_text("\n".join(lines) + "\n")
    (folder / "features_names.txt").write_text("\n".join(names) + "\n")
    np.save(folder / "features.npy", np.array(rows, dtype=np.float16))
    return folder / "tiny.token.txt"


def tiny_recipe(folder: Path, *overrides: str, name: str = "flickr8k-rmsprop") -> Recipe:
    """A recipe on the data in this folder, written when it is not there yet."""
    if not (folder / "tiny.token.txt").exists():
        write_tiny(folder)
    paths = [f"corpus={folder / 'tiny.token.txt'}", f"features={folder / 'features.npy'}"]
    return load_recipe(name, [*paths, *SHORT, *overrides])
