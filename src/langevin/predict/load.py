"""The door: one object that answers, from a run, several chains, or an exported folder."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ..errors import LangevinError
from ..files import inside
from ..posterior.selection import ALL, Chosen, Selection, resolve
from ..process import SILENT, Progress, prepare_device
from ..recipe import Recipe
from ..store.export import read_export
from ..store.folder import RECIPE, SAMPLES, RunFolder
from ..store.replacement import CONFIG
from ..store.samples import SampleStore
from ..tasks.choice import choosing
from .base import Posterior
from .captioning import CaptionPosterior
from .classification import ClassificationPosterior
from .language import LanguagePosterior
from .opened import Opened

P = TypeVar("P", bound=Posterior)

KINDS: dict[str, type[Posterior]] = {
    "language-model": LanguagePosterior,
    "classify": ClassificationPosterior,
    "caption": CaptionPosterior,
}

def load(
    path: str | Path,
    *,
    select: str | None = None,
    samples: int | None = None,
    discard: int = 0,
    skip_damaged: bool = False,
    device: str = "cpu",
) -> Posterior:
    """The posterior of a run folder, of chains, or of an exported folder.

    Which samples are averaged is for `select` (forward, backward or thinned, so many `samples` of
    each chain, without the first `discard`); untold, it is what validation chose when training
    ended, or all. Its data need not be there, but for what asks about a split.
    """
    return open_posterior(path, Selection(select, samples, discard, skip_damaged), device=device)


def open_posterior(
    path: str | Path,
    selection: Selection = Selection(),  # noqa: B008  # frozen
    progress: Progress = SILENT,
    device: str | None = None,
) -> Posterior:
    """The same for a command: on the device and the threads of the recipe unless `device` is given.

    Where "best" is asked for and validation has not chosen yet, it chooses now.
    """
    path = Path(path)
    if (path / CONFIG).is_file():
        opened = open_export(path, selection)
    elif (path / RECIPE).is_file():
        opened = open_run(path, selection, progress)
    else:
        what = "neither in it" if path.is_dir() else "nothing there"
        raise LangevinError(
            f"expected an exported model or a run at {path}, found {what}; see 'langevin export'"
        )
    place = prepare_device(*place_of(opened.recipe, device))
    return KINDS[opened.recipe.task](opened, place)


def open_as(
    kind: type[P],
    path: str | Path,
    selection: Selection = Selection(),  # noqa: B008  # frozen
    progress: Progress = SILENT,
) -> P:
    """The same where only one kind will do; a run of another task is refused."""
    found = open_posterior(path, selection, progress)
    if not isinstance(found, kind):
        raise LangevinError(
            f"expected the run of a {kind.noun} in {path}, got one of {found.recipe.task}; train "
            f"one by {kind.maker}"
        )
    return found


def place_of(recipe: Recipe, device: str | None) -> tuple[str, int | None]:
    """Device and threads."""
    return (recipe.run.device, recipe.run.threads) if device is None else (device, None)


def open_run(path: Path, selection: Selection, progress: Progress) -> Opened:
    folder = RunFolder(path)
    chosen = resolve(folder, selection, choosing(progress))
    return Opened(path, folder.recipe, folder.vocabulary, folder.facts, chosen, folder)


def open_export(path: Path, selection: Selection) -> Opened:
    config, recipe, vocabulary = read_export(path)
    store = SampleStore(inside(path, SAMPLES), skip_damaged=selection.skip_damaged)
    how = selection.how or ALL
    draws = store.select(how, selection.samples, discard=selection.discard)
    return Opened(path, recipe, vocabulary, config.facts, Chosen(draws, how, store.skipped))
