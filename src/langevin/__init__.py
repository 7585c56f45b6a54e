"""Recurrent networks that know what they do not know: samplers that are torch optimisers, samples on disk, averages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import LangevinError
from .posterior.average import Averaged, AveragedValues, average, average_values
from .posterior.ensemble import Ensemble
from .samplers import PSGLD, SGHMC, SGLD, SGNHT, Sampler, Santa
from .store.samples import Sample, SampleStore

if TYPE_CHECKING:
    from .estimator import BayesianTextClassifier as BayesianTextClassifier
    from .predict.predictors import Predictor

__version__ = "0.1.0"

__all__ = [
    "PSGLD", "SGHMC", "SGLD", "SGNHT", "Averaged", "AveragedValues", "Ensemble", "LangevinError",
    "Sample", "SampleStore", "Sampler", "Santa", "average", "average_values", "load",
]


def __getattr__(name: str) -> Any:
    """The estimator, loaded when it is first asked for: scikit-learn takes longer to import than all the rest."""
    if name != "BayesianTextClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .estimator import BayesianTextClassifier
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise LangevinError("the estimator needs scikit-learn; install langevin[estimator]") from None
    return BayesianTextClassifier


def __dir__() -> list[str]:
    return [*globals(), "BayesianTextClassifier"]


def load(folder: str | Path, **options: Any) -> Predictor:
    """A predictor from an exported folder or a run; options as in `langevin.store.export.load`."""
    from .store.export import load as load_folder

    return load_folder(folder, **options)
