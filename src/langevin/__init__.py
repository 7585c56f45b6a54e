"""Recurrent networks that know what they do not know: samplers, samples on disk, averages.

Importing langevin imports nothing else: each public name brings its module when it is first asked
for, so that the command answers at once and an error can be caught without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import LangevinError

if TYPE_CHECKING:
    from .estimator import BayesianTextClassifier as BayesianTextClassifier
    from .posterior.average import Averaged, AveragedValues, average, average_values
    from .posterior.ensemble import Ensemble
    from .predict.load import load
    from .predict.pooling import pool
    from .samplers import PSGLD, SGHMC, SGLD, SGNHT, Sampler, Santa
    from .store.samples import Sample, SampleStore
    from .training.running_mean import RunningMean

__version__ = "0.1.0"

__all__ = [
    "PSGLD", "SGHMC", "SGLD", "SGNHT", "Averaged", "AveragedValues", "Ensemble", "LangevinError",
    "RunningMean", "Sample", "SampleStore", "Sampler", "Santa", "average", "average_values", "load",
    "pool",
]

PLACES = {
    "PSGLD": "samplers", "SGHMC": "samplers", "SGLD": "samplers", "SGNHT": "samplers",
    "Santa": "samplers", "Sampler": "samplers",
    "Averaged": "posterior.average", "average": "posterior.average",
    "AveragedValues": "posterior.average", "average_values": "posterior.average",
    "Ensemble": "posterior.ensemble",
    "Sample": "store.samples", "SampleStore": "store.samples", "load": "predict.load",
    "pool": "predict.pooling",
    "RunningMean": "training.running_mean", "BayesianTextClassifier": "estimator",
}
"""Where the public names live."""


def __getattr__(name: str) -> Any:
    """A public name, from now on an ordinary one of this module."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f".{PLACES[name]}", __name__)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise LangevinError(
            "the estimator needs scikit-learn; install langevin[estimator]"
        ) from None
    return globals().setdefault(name, vars(module)[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *PLACES})
