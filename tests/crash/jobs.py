"""Everything that writes, small: how it begins, how it goes on after a crash, what it leaves."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch

from langevin.errors import LangevinError
from langevin.posterior.selection import EVERYTHING
from langevin.predict.export import export
from langevin.recipe import Recipe, load_recipe
from langevin.store.check import check_folder
from langevin.store.checkpoint import tensors_sum
from langevin.store.folder import RECIPE, RunFolder
from langevin.store.replacement import CONFIG
from langevin.training.chains import start_chains
from langevin.training.distil import Teaching, start_student
from langevin.training.session import resume, start
from tests.fuzz.asking import ask
from tests.fuzz.folders import RECIPES

BRIEF = ["epochs=1", "burn_in=0", "sample_every=0.5"]
OFTEN = "checkpoint_minutes=1e-9"
"""Two samples, and a checkpoint after each batch."""


@dataclass(frozen=True)
class Job:
    """`begin` is the command that is hit by a fault; `go_on` what a user does after it."""

    name: str
    begin: Callable[[], None]
    go_on: Callable[[], None]
    out: str = "out"
    old: str = ""
    """A folder that is to be replaced, copied to `out` before."""


def recipe_of(name: str, *more: str) -> Recipe:
    base, settings = RECIPES[name]
    brief = [] if name == "plateau" else BRIEF
    return load_recipe(base, [*settings, *brief, OFTEN, *more])


def train(recipe: Recipe, *, overwrite: bool = False) -> None:
    start(recipe, Path("out"), overwrite=overwrite).run()


def train_on(recipe: Recipe, *, overwrite: bool = False) -> None:
    """Go on, or where nothing had begun, train again."""
    if (Path("out") / RECIPE).exists():
        resume(Path("out")).run()
    else:
        train(recipe)


def train_chains() -> None:
    go_on_with(start_chains(recipe_of("bytes"), Path("out"), 2))


def train_chains_on() -> None:
    go_on_with(RunFolder("out")) if (Path("out") / RECIPE).exists() else train_chains()


def go_on_with(folder: RunFolder) -> None:
    for chain in folder.chains:
        resume(chain.path).run()


def distil() -> None:
    start_student(Path("teacher"), Path("out"), EVERYTHING, Teaching(generated=100),
                  epochs=0.5).run()


def distil_on() -> None:
    resume(Path("out")).run() if (Path("out") / RECIPE).exists() else distil()


def share() -> None:
    export(Path("teacher"), Path("out"), measure=False)


def share_on() -> None:
    if not (Path("out") / CONFIG).exists():
        share()


def share_anew() -> None:
    export(Path("teacher"), Path("out"), measure=False, overwrite=True)


def replace() -> None:
    train(recipe_of("questions"), overwrite=True)


def replace_on() -> None:
    """If the new run stands, go on; if the old one does, or neither, replace or train again."""
    if (Path("out") / RECIPE).exists() and RunFolder("out").recipe.task == "classify":
        resume(Path("out")).run()
    elif (Path("out") / RECIPE).exists():
        replace()
    else:
        expect_old_one_aside()
        train(recipe_of("questions"))


def expect_old_one_aside() -> None:
    """Nothing is lost: what was to be replaced lies beside, whole."""
    aside = [path for path in Path().glob(".out.replaced-*") if sound(path)]
    if not aside:
        raise LangevinError("the old run is lost")


def pool() -> None:
    expect(ask("pool", "out", "--quiet").code, 0)


def expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise LangevinError(f"expected exit code {wanted}, got {found}")


JOBS = (
    Job("text", lambda: train(recipe_of("bytes")), lambda: train_on(recipe_of("bytes"))),
    Job("words", lambda: train(recipe_of("words")), lambda: train_on(recipe_of("words"))),
    Job("plateau", lambda: train(recipe_of("plateau")), lambda: train_on(recipe_of("plateau"))),
    Job("classifier", lambda: train(recipe_of("questions")),
        lambda: train_on(recipe_of("questions"))),
    Job("captioner", lambda: train(recipe_of("captions")),
        lambda: train_on(recipe_of("captions"))),
    Job("chains", train_chains, train_chains_on),
    Job("student", distil, distil_on),
    Job("export", share, share_on),
    Job("export over another", share_anew, share_anew, old="shared"),
    Job("run over another", replace, replace_on, old="teacher"),
    Job("pool", pool, pool, old="teacher"),
)


def prepare(place: Path) -> None:
    """What jobs find there: a finished run, an exported folder."""
    start(recipe_of("bytes"), place / "teacher").run()
    export(place / "teacher", place / "shared", measure=False)


def lay_out(job: Job, root: Path, place: Path) -> None:
    """A fresh place for one case."""
    place.mkdir()
    (place / "data").symlink_to(root / "data")
    shutil.copytree(root / "teacher", place / "teacher")
    if job.old:
        shutil.copytree(root / job.old, place / "out")


def sound(folder: Path) -> bool:
    try:
        return all(finding.sound for finding in check_folder(folder))
    except LangevinError:
        return False


def fingerprint(folder: Path) -> dict[str, str]:
    """The bits of everything that does not tell time, place or machine."""
    kept = re.compile(r"(samples/.*|.*/samples/.*|vocabulary.json|.*counts.*|generated.*)")
    return {str(path.relative_to(folder)): bits_of(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and kept.fullmatch(str(path.relative_to(folder)))}


def bits_of(path: Path) -> str:
    """Of tensors without the order in which a header names what is about them, which is any."""
    if path.suffix == ".safetensors":
        return tensors_sum(safetensors.torch.load_file(path))
    return hashlib.sha256(path.read_bytes()).hexdigest()
