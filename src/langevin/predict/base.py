"""What every posterior is that the door opens: samples of one model, and all that is needed to ask.

The data of its training are opened only by what asks about a split, and then once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from ..posterior.ensemble import Ensemble
from ..process import SILENT, Progress
from ..store.samples import Sample
from ..tasks import Task, model_of, open_run_task, open_task
from ..tasks.scoring import Across
from ..errors import LangevinError
from .diagnosis import diagnose_runs
from .evaluation import evaluate_samples
from .opened import Opened
from .ranking import TOKENS, RankedItems, rank_items
from .mixing import Diagnosis
from .results import Evaluation


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
        if self.opened.folder is not None:
            return open_run_task(self.opened.folder)
        return open_task(self.recipe, self.vocabulary, self.facts)

    def diagnose(
        self, split: str = "valid", *, discard: int = 0, batches: int | None = 8, probes: int = 16,
        progress: Progress = SILENT,
    ) -> Diagnosis:
        """Whether the stored samples, all of them, are draws of one distribution, and how warm."""
        if self.opened.folder is None:
            raise LangevinError(f"expected a run folder to diagnose, {self.path} was exported and "
                                f"has no chains; diagnose the run")
        return diagnose_runs([self.path], split=split, discard=discard, batches=batches,
                             probes=probes, task=self.data, progress=progress)[0]

    def rank(
        self, split: str = "test", *, tokens: int = TOKENS, top: int = 20, by: str | None = None,
        progress: Progress = SILENT,
    ) -> RankedItems:
        """Every item of a split with its uncertainty; of texts and captions about `tokens` tokens.

        `by` ranks the items: mutual_information (the default where there are several samples),
        entropy (the default for one), standard_deviation or max_probability.
        """
        return rank_items(self.opened, self.data, self.model, split, tokens=tokens, top=top, by=by,
                          progress=progress)

    @property
    def bytes(self) -> int:
        """Memory of the samples that are loaded."""
        return self.ensemble.size * len(self)

    @property
    def has_chains(self) -> bool:
        """Whether the samples are of several chains."""
        return len({sample.chain for sample in self.draws}) > 1

    def evaluate(
        self, split: str = "test", *, text: Path | None = None, curve: bool = False,
        masks: int | None = None, middle: bool = False, student: Path | None = None,
        see: Callable[[Tensor], None] = lambda log_probs: None, progress: Progress = SILENT,
        across: Across | None = None,
    ) -> Evaluation:
        """Scores on a split of the data it was trained on, or on another text.

        Of the last sample, of the best single one by validation, and of the average, with the gain
        of averaging and its standard error. `curve` adds the score of every collection of samples,
        `middle` the one network whose weights are the mean of all, beside the others and with
        what each costs, `student` a distilled run beside these.
        `masks` averages that many dropout masks of the last sample instead of the samples. `see` is
        shown the log-probabilities of each sample. `across` goes over the chains elsewhere, as
        `training.averaging` does, and leaves other members out, as what each sample says of all
        items stays there.
        """
        each, keep = list[Tensor](), self.pools and not masks and across is None

        def look(log_probs: Tensor) -> None:
            see(log_probs)
            if keep:
                each.append(log_probs)

        result = evaluate_samples(
            self.opened, self.data, self.model, split, text=text, curve=curve, masks=masks,
            middle=middle, student=student, see=look, progress=progress, across=across,
        )  # fmt: skip
        return self.with_members(result, each) if keep else result

    @property
    def pools(self) -> bool:
        """Whether other members join the samples."""
        return False

    def with_members(self, result: Evaluation, each: Sequence[Tensor]) -> Evaluation:
        """An evaluation of samples, of which `each` has the log-probabilities, with the other
        members and the pool."""
        return result

    def __len__(self) -> int:
        """How many samples are averaged."""
        return len(self.draws)

    def __repr__(self) -> str:
        m = self.recipe.model
        return f"{type(self).__name__}({len(self)} samples of {m.layers}×{m.hidden} {m.cell})"
