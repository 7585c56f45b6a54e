"""What every posterior is that the door opens: samples of one model, and all that is needed to ask.

The data of its training are opened only by what asks about a split, and then once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..data.vocabulary import Vocabulary
from ..posterior.ensemble import Ensemble
from ..posterior.selection import Chosen
from ..recipe import Recipe
from ..store.folder import RunFolder
from ..store.samples import Sample
from ..tasks import Task, model_of, open_task


@dataclass(frozen=True)
class Opened:
    """What the door read of a folder."""

    path: Path
    recipe: Recipe
    vocabulary: Vocabulary
    facts: dict[str, Any]
    chosen: Chosen
    """The samples that are averaged."""
    folder: RunFolder | None = None
    """None for an exported one."""


class Posterior:
    """Samples of the weights of one model. `langevin.load` makes the one of the task."""

    plan = "auto"
    noun, maker = "posterior", "langevin train"
    """What it is called in messages, and what makes one."""

    def __init__(self, opened: Opened, device: torch.device) -> None:
        self.opened, self.path, self.device = opened, opened.path, device
        self.recipe, self.vocabulary, self.facts = opened.recipe, opened.vocabulary, opened.facts
        self.draws: list[Sample] = opened.chosen.samples
        """The samples that are averaged."""

    @cached_property
    def model(self) -> nn.Module:
        """A network of the right shape; it has the weights of whoever loaded some last."""
        return model_of(self.recipe, self.vocabulary, self.facts).to(self.device).eval()

    @cached_property
    def ensemble(self) -> Ensemble:
        """All samples, run as one."""
        return Ensemble(self.model, self.draws, plan=self.plan)

    @cached_property
    def data(self) -> Task:
        """What it was trained on, which must still be there; opened once."""
        return open_task(self.recipe, self.vocabulary, self.facts)

    @property
    def has_chains(self) -> bool:
        """Whether the samples are of several chains."""
        return len({sample.chain for sample in self.draws}) > 1

    def __len__(self) -> int:
        """How many samples are averaged."""
        return len(self.draws)

    def __repr__(self) -> str:
        m = self.recipe.model
        return f"{type(self).__name__}({len(self)} samples of {m.layers}×{m.hidden} {m.cell})"
