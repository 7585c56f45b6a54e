"""Small captioned pictures, written to disk, and a small image network of random weights."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from langevin.cli.train_captions import CaptionOptions
from langevin.recipe import load_recipe
from langevin.training.session import start

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}
COUNT = 30
TINY = ["hidden=8", "batch_size=8", "min_count=1", "threads=1", "epochs=2"]
"""Settings of a training that takes no time, and the same as options."""
SHORT = [word for setting in TINY for word in ("--set", setting)] + ["--quiet"]


def write_pictures(folder: Path, count: int = COUNT) -> list[tuple[str, str]]:
    """Pictures of one colour with some noise; rows of image and caption, two for each."""
    from PIL import Image

    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
        colour = list(COLOURS)[number % 3]
        pixels = np.full((24, 32, 3), COLOURS[colour]) + rng.integers(-20, 20, (24, 32, 3))
        name = f"{number:02}.png"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name)
        rows += [(name, f"A {colour} wall ."), (name, f"{colour}, and nothing else")]
    return rows


def write_table(path: Path, rows: list[tuple[str, ...]], columns: tuple[str, ...]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def train_tiny(folder: Path) -> Path:
    """A folder with pictures, captions.tsv, a network, and a run that learnt from them."""
    rows = write_pictures(folder / "pictures")
    write_table(folder / "captions.tsv", rows, ("image", "caption"))
    write_network(folder / "network")
    given = CaptionOptions(
        folder / "pictures", folder / "captions.tsv", None, str(folder / "network")
    )
    start(load_recipe("captions", [*given.settings(), *TINY]), folder / "run").run()
    return folder


def write_network(folder: Path, size: int = 16, seed: int = 0) -> Path:
    """A convolutional network as transformers saves it, with how it wants pictures."""
    import torch
    from transformers import ConvNextImageProcessor, ResNetConfig, ResNetModel

    torch.manual_seed(seed)
    config = ResNetConfig(
        embedding_size=4, hidden_sizes=[4, size], depths=[1, 1], layer_type="basic"
    )
    ResNetModel(config).save_pretrained(folder)
    ConvNextImageProcessor(size={"shortest_edge": 32}).save_pretrained(folder)
    return folder
