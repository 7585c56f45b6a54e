"""A run beside its optimiser twin: what sampling was worth at equal cost."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import LangevinError
from ..posterior.mixture import paired_gain
from ..posterior.scores import Result, Scores
from ..process import SILENT, Progress
from ..tasks.scoring import kept_of_validation, score_samples
from .base import Posterior
from .evaluation import best_by_validation, training_cost


@dataclass(frozen=True)
class TwinGain(Result):
    """The average of a run against the one network that an optimiser found in as many epochs."""

    run: str
    twin: str
    optimiser: str
    split: str
    unit: str
    samples: int
    averaged: Scores
    single: Scores
    """Of the twin's network that validation prefers, as early stopping would."""
    gain: float
    """Nats per item by which the average is ahead, and the standard error of that."""
    gain_error: float | None
    steps: int
    seconds: float
    twin_steps: int
    twin_seconds: float


def compare_with_twin(
    run: Posterior, twin: Posterior, split: str = "valid", progress: Progress = SILENT,
) -> TwinGain:
    """Both on one split, paired over its items."""
    best = best_by_validation(twin.opened)
    if best is None:
        raise LangevinError(f"expected a network of finite loss in {twin.path}, found none; lower "
                            f"lr")
    kept = kept_of_validation if split == "valid" else None
    advance = progress.begin(len(run) + 1)
    ours = score_samples(run.data, run.model, run.draws, split, advance, kept_by=kept)
    other = score_samples(run.data, run.model, [best], split, advance, kept_by=kept)
    gain, error = paired_gain(ours.averaged.nll, other.averaged.nll, in_order=run.data.in_order)
    (steps, seconds, _), (twin_steps, twin_seconds, _) = map(
        training_cost, (run.opened, twin.opened))
    return TwinGain(
        run=str(run.path), twin=str(twin.path), optimiser=twin.recipe.sampler.name, split=split,
        unit=run.data.unit, samples=len(run), averaged=ours.averaged.scores,
        single=other.averaged.scores, gain=gain, gain_error=error, steps=steps, seconds=seconds,
        twin_steps=twin_steps, twin_seconds=twin_seconds,
    )  # fmt: skip
