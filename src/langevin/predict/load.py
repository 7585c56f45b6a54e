"""The door: a predictor from a run or an exported folder, without the data of its training."""

from __future__ import annotations

from pathlib import Path

from ..errors import LangevinError
from ..files import inside
from ..store.export import read_export
from ..store.folder import RECIPE, SAMPLES, RunFolder
from ..store.replacement import CONFIG
from ..store.samples import Sample, SampleStore
from ..tasks import model_of
from ..training.loop import prepare_device
from ..training.session import Selection, select, usual
from .predictors import PREDICTORS, Predictor


def load(
    folder: str | Path, *, samples: int | None = None, select: str | None = None,
    skip_damaged: bool = False, device: str = "cpu",
) -> Predictor:
    """A predictor from an exported folder, or from a run folder.

    Of a run it averages, untold, what validation chose when training ended, as the commands do.
    """
    path = Path(folder)
    if (path / CONFIG).is_file():
        config, recipe, vocabulary = read_export(path)
        store = SampleStore(inside(path, SAMPLES), skip_damaged=skip_damaged)
        facts, chosen = config.facts, store.select(select or Selection.how, samples)
    elif (path / RECIPE).is_file():
        run = RunFolder(path)
        recipe, vocabulary, facts = run.recipe, run.vocabulary, run.facts
        chosen = samples_of(run, select, samples, skip_damaged=skip_damaged)
    else:
        what = "neither in it" if path.is_dir() else "nothing there"
        raise LangevinError(f"expected an exported model or a run at {path}, found {what}; see "
                            f"'langevin export'")
    here = recipe.run.model_copy(update={"device": device, "threads": None})
    recipe = recipe.model_copy(update={"run": here})
    model = model_of(recipe, vocabulary, facts).to(prepare_device(recipe))
    return PREDICTORS[recipe.task](model, chosen, recipe, vocabulary, facts)


def samples_of(
    run: RunFolder, how: str | None, count: int | None, *, skip_damaged: bool
) -> list[Sample]:
    how = how or usual(run.path, count, skip_damaged=skip_damaged)
    return select(run, Selection(how, count, 0, skip_damaged))[0]
