"""Interleaved repetitions and what is said about them: medians, quartiles, ratios within one
run."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Turn = Callable[[int], float]
"""Does so many steps and returns the seconds they took."""
Series = list[float | None]
"""Seconds per step, one entry for each round; None where the contender sat out."""

PAUSE = 0.02
"""Seconds between two turns: OpenMP threads of the last one go on spinning for some
milliseconds."""


@dataclass(frozen=True)
class Contender:
    """A name, what to do, and in which rounds: every so many (for slow ones that no verdict hangs
    on)."""

    name: str
    run: Turn
    every: int = 1


def interleave(
    contenders: Sequence[Contender], *, rounds: int, seconds: float | None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[str, Any]]:
    """Every contender once in each round, for about `seconds`, in an order that is shuffled from
    round to round.

    `seconds` None means one step without warming up: a fresh process, a whole epoch. Returns a
    `summary` for each. A contender that fails at its first step is reported and left out.
    """
    steps: dict[str, int] = {}
    for contender in contenders:
        try:
            steps[contender.name] = 1 if seconds is None else steps_for(contender.run, seconds)
        except (RuntimeError, OSError) as error:
            say(f"{contender.name} is left out: {error}")
    taking_part = [c for c in contenders if c.name in steps]
    measured: dict[str, Series] = {c.name: [] for c in taking_part}
    order = random.Random(0)
    for number in range(rounds):
        for contender in order.sample(taking_part, len(taking_part)):
            if number % contender.every:
                measured[contender.name].append(None)
                continue
            time.sleep(PAUSE)
            many = steps[contender.name]
            if many > 1:
                contender.run(1)  # the caches hold another contender's weights
            measured[contender.name].append(contender.run(many) / many)
        say(f"round {number + 1} of {rounds}")
    return {name: summary(series) for name, series in measured.items()}


def steps_for(run: Turn, seconds: float) -> int:
    """How many steps fill the time, after one that compiles, allocates and fills caches."""
    run(1)
    return max(1, round(seconds / max(run(2) / 2, 1e-9)))


def present(series: Iterable[float | None]) -> list[float]:
    return [value for value in series if value is not None]


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, upper


def summary(series: Series) -> dict[str, Any]:
    """Median and quartiles of the seconds per step, and the rounds themselves."""
    values = present(series)
    lower, upper = quartiles(values)
    return {"median": statistics.median(values), "q1": lower, "q3": upper, "rounds": series}


def ratio(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """Ratio of the medians of two summaries; its spread is that of the ratios round by round."""
    pairs = zip(one["rounds"], other["rounds"], strict=True)
    lower, upper = quartiles([a / b for a, b in pairs if a is not None and b is not None])
    return {"ratio": one["median"] / other["median"], "q1": lower, "q3": upper}


def fastest(summaries: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> str | None:
    """Of these contenders the one with the smallest median; None when none was measured."""
    return min((n for n in names if n in summaries), key=lambda n: summaries[n]["median"], default=None)


def timed(step: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Turn:
    """A turn made of equal steps."""

    def run(steps: int) -> float:
        began = clock()
        for _ in range(steps):
            step()
        return clock() - began

    return run
