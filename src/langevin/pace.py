"""Learning rate, temperature and due samples as functions of the step alone, so that a resumed run agrees."""

from __future__ import annotations

from .recipe import Run
from .samplers.schedules import Schedule, constant, cosine_cyclical, step_decay


class Pace:
    """A recipe's schedules, converted from epochs to steps."""

    def __init__(self, run: Run, base_lr: float, temperature: float, steps_per_epoch: int) -> None:
        def steps(epochs: float) -> int:
            return max(1, round(epochs * steps_per_epoch))

        self.run, self.base_lr, self.temperature = run, base_lr, temperature
        self.steps_per_epoch = steps_per_epoch
        self.total = steps(run.epochs)
        self.burn_in = steps(run.burn_in) if run.burn_in else 0
        self.interval = max(1.0, run.sample_every * steps_per_epoch)
        self.ramp = steps(run.temperature_ramp) if run.temperature_ramp else 0
        self.cycle = steps(run.cycle)
        choices: dict[str, Schedule] = {
            "constant": constant(),
            "step": step_decay(steps(run.decay_after), steps(run.decay_every), run.decay_factor),
            "cyclical": self._cyclical(cosine_cyclical(self.cycle, run.cycle_floor)),
        }
        self.factor = choices[run.lr_schedule]

    def _cyclical(self, wave: Schedule) -> Schedule:
        return lambda step: 1.0 if step < self.burn_in else wave(step - self.burn_in)

    def explores(self, step: int) -> bool:
        """Within the part of a cycle that only moves to a new mode."""
        if self.run.lr_schedule != "cyclical" or step < self.burn_in:
            return False
        return (step - self.burn_in) % self.cycle < self.run.cycle_explore * self.cycle

    def lr_at(self, step: int) -> float:
        return self.base_lr * self.factor(step)

    def temperature_at(self, step: int) -> float:
        """Burn-in's own temperature, then a linear rise over the ramp, then the sampler's; 0 while a cycle explores."""
        start = self.temperature if self.run.burn_in_temperature is None else self.run.burn_in_temperature
        if step < self.burn_in:
            return start
        if self.explores(step):
            return 0.0
        risen = 1.0 if not self.ramp else min(1.0, (step - self.burn_in + 1) / self.ramp)
        return start + (self.temperature - start) * risen

    def is_record(self, step: int) -> bool:
        """Whether to validate after this many steps."""
        return step > 0 and (self._on_grid(step) or step == self.total)

    def is_sample(self, step: int) -> bool:
        """Whether the weights after this many steps are a sample of the posterior."""
        return step > self.burn_in and self._on_grid(step) and not self.explores(step - 1)

    def _on_grid(self, step: int) -> bool:
        """At a whole number of sampling intervals from the end of burn-in, rounded to a step."""
        passed = step - self.burn_in
        return round(round(passed / self.interval) * self.interval) == passed
