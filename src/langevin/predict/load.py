"""The door: one object that answers, from a run, several chains, or an exported folder."""

from __future__ import annotations

from pathlib import Path

from ..errors import LangevinError
from ..files import inside
from ..store.export import read_export
from ..store.folder import RECIPE, SAMPLES, RunFolder
from ..store.replacement import CONFIG
from ..store.samples import SampleStore
from ..training.loop import prepare_device
from ..training.session import Selection, usual
from ..training.session import select as choose_samples
from .base import Opened, Posterior
from .captioning import CaptionPosterior
from .classification import ClassificationPosterior
from .language import LanguagePosterior

KINDS: dict[str, type[Posterior]] = {
    "language-model": LanguagePosterior, "classify": ClassificationPosterior,
    "caption": CaptionPosterior,
}


def load(
    path: str | Path, *, select: str | None = None, samples: int | None = None, discard: int = 0,
    skip_damaged: bool = False, device: str = "cpu",
) -> Posterior:
    """The posterior of a run folder, of chains, or of an exported folder.

    Which samples are averaged is for `select` (forward, backward or thinned, so many `samples` of
    each chain, without the first `discard`); untold, it is what validation chose when training
    ended, or all. Its data need not be there, but for what asks about a split.
    """
    path = Path(path)
    if (path / CONFIG).is_file():
        opened = open_export(path, select, samples, discard, skip_damaged)
    elif (path / RECIPE).is_file():
        opened = open_run(path, select, samples, discard, skip_damaged)
    else:
        what = "neither in it" if path.is_dir() else "nothing there"
        raise LangevinError(f"expected an exported model or a run at {path}, found {what}; see "
                            f"'langevin export'")
    here = opened.recipe.run.model_copy(update={"device": device, "threads": None})
    place = prepare_device(opened.recipe.model_copy(update={"run": here}))
    return KINDS[opened.recipe.task](opened, place)


def open_run(
    path: Path, select: str | None, samples: int | None, discard: int, skip_damaged: bool
) -> Opened:
    folder = RunFolder(path)
    how = select or usual(path, samples, discard, skip_damaged)
    draws, skipped = choose_samples(folder, Selection(how, samples, discard, skip_damaged))
    return Opened(path, folder.recipe, folder.vocabulary, folder.facts, draws, how, skipped)


def open_export(
    path: Path, select: str | None, samples: int | None, discard: int, skip_damaged: bool
) -> Opened:
    config, recipe, vocabulary = read_export(path)
    store = SampleStore(inside(path, SAMPLES), skip_damaged=skip_damaged)
    how = select or Selection.how
    draws = store.select(how, samples, discard=discard)
    return Opened(path, recipe, vocabulary, config.facts, draws, how, store.skipped)
