"""Learning-rate schedules: factories of `step → factor`, for
`torch.optim.lr_scheduler.LambdaLR` or the recipe.

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
    """1 until `after`, then multiplied by `factor` at `after` and again each `every` steps
    (Zaremba's recipe)."""
    require(every > 0, "every", "positive", every, "pass the number of steps between two decays")
    require(0 < factor <= 1, "factor", "in (0, 1]", factor, "pass 0.5 to halve the rate")
    return lambda step: 1.0 if step < after else factor ** (1 + (step - after) // every)


def cosine_cyclical(cycle: int, floor: float = 0.0) -> Schedule:
    """From 1 down to `floor` along half a cosine, again and again every `cycle` steps (Zhang et al.
    2020)."""
    require(cycle > 0, "cycle", "positive", cycle, "pass the number of steps in a cycle")
    require(0 <= floor <= 1, "floor", "in [0, 1]", floor, "pass 0 to end each cycle at rate 0")
    return lambda step: floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * (step % cycle) / cycle))


def plateau(total: int, hold: float = 0.5, floor: float = 0.3) -> Schedule:
    """1 for the first `hold` of `total` steps, then along a line to `floor` at the end, and there.

    Time at the full rate counts, and the average forgives a rate that has not fallen far: samples
    that are running means of the weights are taken at `PLACES` of the whole.
    """
    require(total > 0, "total", "positive", total, "pass the number of steps of the run")
    require(0 <= hold < 1, "hold", "in [0, 1)", hold, "pass 0.5 to hold the rate half of the time")
    require(0 <= floor <= 1, "floor", "in [0, 1]", floor, "pass 0 to end at rate 0")

    def factor(step: int) -> float:
        fallen = (step / total - hold) / (1 - hold)
        return 1 - (1 - floor) * min(max(fallen, 0.0), 1.0)

    return factor


PLACES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
"""Of the steps of a `plateau`, where its samples are taken: closer together where the rate is
low."""


def sampling_places(total: int, hold: float = 0.5) -> tuple[int, ...]:
    """The steps after which a `plateau` of so many steps has its samples: from its end on."""
    places = (hold + (2 * place - 1) * (1 - hold) for place in PLACES)
    return tuple(sorted({max(1, round(place * total)) for place in places}))
