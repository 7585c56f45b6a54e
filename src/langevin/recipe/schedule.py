"""Learning rate, temperature and due samples as functions of the step alone, so that a resumed run
agrees."""

from __future__ import annotations

import math

from ..samplers.schedules import Schedule, constant, cosine_cyclical, plateau, sampling_places, step_decay
from . import Run


GROWTH = 1.25
"""From one validation on the plateau to the next, in steps; the first is after an epoch."""
FALL = 0.5
"""Length of the fall, in steps of a plateau that validation has ended."""


class Pace:
    """A recipe's schedules, converted from epochs to steps.

    A plateau of the rate holds for a share of the epochs, unless validation turns: then it was
    `turned` after so many steps, and the rate falls from there.
    """

    def __init__(
        self, run: Run, base_lr: float, temperature: float, steps_per_epoch: int, turned: int | None = None
    ) -> None:
        def steps(epochs: float) -> int:
            return max(1, round(epochs * steps_per_epoch))

        self.run, self.base_lr, self.temperature = run, base_lr, temperature
        self.steps_per_epoch = steps_per_epoch
        self.total = steps(run.epochs)
        self.burn_in = steps(run.burn_in) if run.burn_in else 0
        self.interval = max(1.0, run.sample_every * steps_per_epoch)
        self.cycle = steps(run.cycle)
        self.turned, self.hold, self.places = turned, self.total, frozenset[int]()
        """`hold` is the step at which a plateau ends; `places` are the steps of its samples."""
        if run.lr_schedule == "plateau":
            self._place_samples()
        choices: dict[str, Schedule] = {
            "constant": constant(),
            "step": step_decay(steps(run.decay_after), steps(run.decay_every), run.decay_factor),
            "cyclical": self._cyclical(cosine_cyclical(self.cycle, run.cycle_floor)),
            "plateau": plateau(
                self.total, self.hold / self.total if self.hold < self.total else 0.0, run.floor
            ),
        }
        self.factor = choices[run.lr_schedule]

    def _place_samples(self) -> None:
        if self.turned is not None:
            self.total = min(self.total, self.turned + max(1, round(FALL * self.turned)))
        self.hold = round(self.run.hold * self.total) if self.turned is None else self.turned
        self.places = frozenset(sampling_places(self.total, self.hold / self.total))
        self.burn_in = min(self.places) - 1

    @property
    def has_plateau(self) -> bool:
        return bool(self.places)

    def turn(self, step: int) -> Pace:
        """The same with a plateau that ends here."""
        return Pace(self.run, self.base_lr, self.temperature, self.steps_per_epoch, step)

    def _cyclical(self, wave: Schedule) -> Schedule:
        return lambda step: 1.0 if step < self.burn_in else wave(step - self.burn_in)

    def explores(self, step: int) -> bool:
        """Within the part of a cycle that only moves to a new mode."""
        if self.run.lr_schedule != "cyclical" or step < self.burn_in:
            return False
        explored = min(self.run.cycle_explore * self.cycle, self.cycle - 1)  # of short ones not all
        return (step - self.burn_in) % self.cycle < explored

    def lr_at(self, step: int) -> float:
        return self.base_lr * self.factor(step)

    def temperature_at(self, step: int) -> float:
        """Burn-in's own temperature, then the sampler's; 0 while a cycle explores."""
        if step < self.burn_in and self.run.burn_in_temperature is not None:
            return self.run.burn_in_temperature
        return 0.0 if self.explores(step) else self.temperature

    def is_record(self, step: int) -> bool:
        """Whether to validate after this many steps."""
        if self.places:
            return step in self.places or (step < self.hold and self._on_plateau_grid(step))
        return step > 0 and (self._on_grid(step) or step == self.total)

    def is_sample(self, step: int) -> bool:
        """Whether the weights after this many steps are a sample of the posterior."""
        if self.places:
            return step in self.places
        return step > self.burn_in and self._on_grid(step) and not self.explores(step - 1)

    def _on_grid(self, step: int) -> bool:
        """At a whole number of sampling intervals from the end of burn-in, rounded to a step."""
        passed = step - self.burn_in
        return round(round(passed / self.interval) * self.interval) == passed

    def _on_plateau_grid(self, step: int) -> bool:
        """After 1, 1.25, 1.25² … epochs, whatever the budget: a longer run validates at the same
        steps."""
        if step < self.steps_per_epoch:
            return False
        power = round(math.log(step / self.steps_per_epoch, GROWTH))
        return round(self.steps_per_epoch * GROWTH**power) == step
