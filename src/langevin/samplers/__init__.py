"""Gradient → next θ: torch optimisers that sample; imports nothing else of the project."""

from .base import Sampler
from .psgld import PSGLD
from .santa import Santa
from .sghmc import SGHMC
from .sgld import SGLD
from .sgnht import SGNHT

SAMPLERS: dict[str, type[Sampler]] = {"sgld": SGLD, "psgld": PSGLD, "sghmc": SGHMC, "sgnht": SGNHT, "santa": Santa}

__all__ = ["PSGLD", "SAMPLERS", "SGHMC", "SGLD", "SGNHT", "Sampler", "Santa"]
