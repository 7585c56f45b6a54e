"""What the door read of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.vocabulary import Vocabulary
from ..posterior.selection import Chosen
from ..recipe import Recipe
from ..store.folder import RunFolder


@dataclass(frozen=True)
class Opened:
    """A run, chains or an exported folder, without its data."""

    path: Path
    recipe: Recipe
    vocabulary: Vocabulary
    facts: dict[str, Any]
    chosen: Chosen
    """The samples that are averaged."""
    folder: RunFolder | None = None
    """None for an exported one."""
