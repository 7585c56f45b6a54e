"""Tiny folders of every kind, trained once on the data of `fixtures/`: whole, half trained,
exported.

Those in `fixtures/` themselves are of a version that wrote no checksums, so that damage cannot be
seen there; they are asked only to end in no traceback.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from langevin.predict.export import export
from langevin.posterior.selection import EVERYTHING
from langevin.recipe import Recipe, load_recipe
from langevin.tasks.choice import choose_by_validation
from langevin.training.chains import start_chains
from langevin.training.distil import Teaching, start_student
from langevin.training.loop import Interrupted
from langevin.training.session import resume, start
from tests.fuzz.asking import ask

FIXTURES = Path(__file__).parents[1] / "fixtures"
SHORT = ("layers=1", "threads=1", "patience=none")
SMALL = ("corpus=data/passage.txt", "hidden=4", "cell=rnn", "batch_size=8", "window=20",
         "parts=[80,10,10]", "epochs=2", "lr=0.01", "prior_var=1.0", "layers=1", "threads=1",
         "by_size=false")
TEXT = (*SMALL, "burn_in=1", "sample_every=0.25", "temperature=0.5", "lr_schedule=constant",
        "sample=last", "patience=none")
RECIPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "bytes": ("text", TEXT),
    "words": ("text", (*TEXT, "level=word", "cell=gru", "batching=random",
                       "epochs=3")),
    "plateau": ("text", (*SMALL, "epochs=3")),
    "questions": ("classify", (
        "corpus=data/questions.csv", "valid_file=data/valid.csv", "test_file=data/test.csv",
        "hidden=5", "embed=4", "batch_size=10", "epochs=4", "burn_in=2", "sample_every=0.5",
        "lr=0.02", "temperature=0.5", "dropout=0.2", "max_words=8", *SHORT)),
    "captions": ("flickr8k-psgld-dropout", (
        "corpus=data/tiny.token.txt", "features=data/features.npy", "hidden=8", "batch_size=8",
        "min_count=2", "epochs=4", "burn_in=2", "sample_every=0.5", "lr=0.02", "threads=1")),
}
CHAINS = "chains"
STUDENT = "student"
POOLED = "pooled"
"""The run of bytes with n-gram counts beside its samples."""
HALF = {"half-bytes": "bytes", "half-questions": "questions", "half-captions": "captions"}
"""Runs that were stopped on their way, and of which recipe."""
SHARED = ("bytes", "questions", "captions", CHAINS)
OLD = tuple(f"old-{name}" for name in ("bytes", "chains", "questions", "captions", "student",
                                       "bytes-shared", "questions-shared", "captions-shared"))


def recipe_of(name: str) -> Recipe:
    base, settings = RECIPES[name]
    return load_recipe(base, list(settings))


def make_folders(root: Path) -> None:
    """All of them in `root`, beside `data/`, which their recipes name from there."""
    root.mkdir(parents=True, exist_ok=True)
    shutil.copytree(FIXTURES / "data", root / "data")
    with contextlib.chdir(root):
        for name in RECIPES:
            train_whole(recipe_of(name), Path(name))
        folder = start_chains(load_recipe("text", [*TEXT, "hidden=3"]), Path(CHAINS), 2)
        for chain in folder.chains:
            resume(chain.path).run()
        choose_by_validation(folder, folder.store().samples)
        start_student(Path("bytes"), Path(STUDENT), EVERYTHING, Teaching(generated=400),
                      epochs=1).run()
        for name, of in HALF.items():
            train_half(recipe_of(of), Path(name))
        shutil.copytree("bytes", POOLED)
        for name in SHARED:
            export(Path(name), Path(f"{name}-shared"), measure=False)
        for words in (["pool", POOLED, "--quiet"],
                      ["export", POOLED, f"{POOLED}-shared", "--with-counts", "--no-evaluate"]):
            answer = ask(*words)
            assert answer.code == 0, answer
        for target in (["--coverage", "0.8"], ["--risk", "0.3"]):
            assert ask("decide", "questions", *target, "--json").code == 0
    for name in OLD:
        shutil.copytree(FIXTURES / name.removeprefix("old-"), root / name)


def train_whole(recipe: Recipe, out: Path) -> None:
    trainer = start(recipe, out)
    trainer.run()
    if recipe.task != "classify":
        choose_by_validation(trainer.folder, trainer.store.samples)


def train_half(recipe: Recipe, out: Path) -> None:
    """To just after the second sample, as a stopped run is."""
    trainer = start(recipe, out)
    with contextlib.suppress(Interrupted):
        trainer.run(stop=lambda: len(trainer.store) >= 2 and trainer.recorded < trainer.step)


@contextlib.contextmanager
def copied(root: Path, name: str, into: Path) -> Iterator[Path]:
    """A place of its own for one case: the folder, what it needs beside it, and a bystander."""
    into.mkdir()
    (into / "data").symlink_to(root / "data")
    for other in needed(name):
        shutil.copytree(root / other, into / other)
    (into / "precious.txt").write_text("not yours")
    try:
        with contextlib.chdir(into):
            yield into / name
    finally:
        shutil.rmtree(into)


def needed(name: str) -> list[str]:
    """A student needs its teacher to be resumed."""
    return [name, *(["bytes"] if name == STUDENT else [])]
