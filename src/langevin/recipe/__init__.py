"""Settings: read from TOML, validated before the first batch, frozen, kept in the run."""

from .captions import CaptionData
from .load import Recipe, all_keys, load_recipe, locate, shipped
from .sentences import SentenceData
from .tables import OPTIMISERS, Model, Run, SamplerSettings
from .text import TextData

__all__ = [
    "OPTIMISERS", "CaptionData", "Model", "Recipe", "Run", "SamplerSettings", "SentenceData", "TextData", "all_keys",
    "load_recipe", "locate", "shipped",
]
