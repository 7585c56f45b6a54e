"""Learning-rate schedules: factories of `step → factor`, for `torch.optim.lr_scheduler.LambdaLR` or the recipe.

>>> import torch
>>> sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
>>> scheduler = torch.optim.lr_scheduler.LambdaLR(sgd, cosine_cyclical(cycle=100))
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .checks import require

Schedule = Callable[[int], float]


def constant() -> Schedule:
    """1 at every step."""
    return lambda step: 1.0


def step_decay(after: int, every: int, factor: float) -> Schedule:
    """1 until `after`, then multiplied by `factor` at `after` and again each `every` steps (Zaremba's recipe)."""
    require(every > 0, "every", "positive", every, "pass the number of steps between two decays")
    require(0 < factor <= 1, "factor", "in (0, 1]", factor, "pass 0.5 to halve the rate")
    return lambda step: 1.0 if step < after else factor ** (1 + (step - after) // every)


def cosine_cyclical(cycle: int, floor: float = 0.0) -> Schedule:
    """From 1 down to `floor` along half a cosine, again and again every `cycle` steps (Zhang et al. 2020)."""
    require(cycle > 0, "cycle", "positive", cycle, "pass the number of steps in a cycle")
    require(0 <= floor <= 1, "floor", "in [0, 1]", floor, "pass 0 to end each cycle at rate 0")
    return lambda step: floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * (step % cycle) / cycle))
