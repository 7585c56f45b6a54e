"""The gradient of a whole batch: of our rows piece by piece, and of those of other processes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..errors import LangevinError
from ..tasks.base import Carry, Task
from .parallel import Group
from .state import Parts


def fill_gradient(
    parts: Parts, task: Task, step: int, carries: Sequence[Carry]
) -> tuple[float, list[Carry]]:
    """Into `.grad`, for the batch of a step; returns its loss, and the state after each of our
    pieces."""
    epoch, index = divmod(step, task.batches_per_epoch)
    run = task.recipe.run
    parts.model.train()
    parts.sampler.zero_grad()
    value, after = 0.0, list[Carry]()
    for piece, carry in zip(parts.pieces, carries, strict=True):
        torch.manual_seed(run.seed * 1_000_003 + step)  # dropout masks depend on the step alone
        with torch.autocast(parts.device.type, torch.bfloat16, enabled=run.precision == "bfloat16"):
            loss, state = task.loss(parts.model, epoch, index, carry, piece)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        value += loss.item()
        after.append(state)
    return parts.group.sum_gradients(parts.trained, value), after


def refuse_few_rows(task: Task, group: Group, accumulate: int) -> None:
    """Every piece of every batch has a row."""
    if task.fewest_rows < group.size * accumulate:
        raise LangevinError(
            f"expected at most {task.fewest_rows} pieces of a batch, as the smallest has so many rows, got "
            f"{group.size} processes × accumulate = {accumulate}; raise batch_size, or lower these"
        )
