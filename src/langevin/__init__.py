"""Recurrent networks that know what they do not know: samplers that are torch optimisers, samples on disk, averages."""

from .errors import LangevinError
from .posterior.average import Averaged, average
from .posterior.ensemble import Ensemble
from .posterior.store import Sample, SampleStore
from .samplers import PSGLD, SGHMC, SGLD, SGNHT, Sampler, Santa

__version__ = "0.1.0"

__all__ = [
    "PSGLD", "SGHMC", "SGLD", "SGNHT", "Averaged", "Ensemble", "LangevinError", "Sample", "SampleStore", "Sampler",
    "Santa", "average",
]
