"""What more machines would cost, on paper: a small simulation from parts that were measured.

`python -m benchmarks.scaling` makes the tables of docs/scaling.md from results/scaling.json, which
`python -m benchmarks.scaling_parts` measures.
"""

from __future__ import annotations

import heapq
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "scaling.json", ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- tables:begin -->", "<!-- tables:end -->"
FLOAT = 4
"""Bytes of a weight or a gradient."""
HOUR = 3600.0


@dataclass(frozen=True)
class Costs:
    """One chain on one processor; seconds and bytes."""

    step: float
    """Of a batch: gradient and update."""
    update: float
    """Of it, the update with its noise, which every rank of a chain makes in full."""
    weights: int
    sample: float
    """To write a sample, flushed to disk."""
    sample_bytes: int
    checkpoint: float
    checkpoint_bytes: int
    start: float
    """From the command to the first step."""


@dataclass(frozen=True)
class Wire:
    """Between ranks: a message of n bytes takes latency + n / bandwidth."""

    latency: float
    bandwidth: float


def all_reduce(size: int, ranks: int, wire: Wire) -> float:
    """A ring: 2·(p − 1) messages of size/p bytes, one after the other."""
    return 2 * (ranks - 1) * (wire.latency + size / ranks / wire.bandwidth)


def step_across(costs: Costs, ranks: int, wire: Wire) -> float:
    """Seconds of a batch whose rows are shared: the gradient is divided, the update is not."""
    shared = (costs.step - costs.update) / ranks
    return shared + costs.update + all_reduce(FLOAT * costs.weights, ranks, wire)


@dataclass(frozen=True)
class Plan:
    """Chains on a cluster that loses processors now and then."""

    chains: int
    slots: int
    """Chains that train at a time."""
    steps: int
    samples: int
    save_every: float = 60.0
    """Seconds between two checkpoints."""
    between_failures: float = math.inf
    """Hours that a slot runs before it is lost, on average."""
    notice: float = 10.0
    """Seconds until another slot goes on."""


@dataclass(frozen=True)
class Outcome:
    """Of a plan."""

    seconds: float
    """Until the last chain has ended."""
    busy: float
    """Share of the slots' time in which they computed what was kept."""
    failures: int


def work_of(costs: Costs, plan: Plan) -> float:
    """Seconds of a chain on a slot of its own that nobody kills."""
    computing = plan.steps * costs.step + plan.samples * (costs.sample + costs.checkpoint)
    return costs.start + computing * (1 + costs.checkpoint / plan.save_every)


def simulate(costs: Costs, plan: Plan, seed: int = 0) -> Outcome:
    """Chains take the first slot that is free. A failure throws a chain back to its last
    checkpoint."""
    chance, work = random.Random(seed), work_of(costs, plan)
    free = [0.0] * min(plan.slots, plan.chains)
    failures = 0
    for _ in range(plan.chains):
        now, left = heapq.heappop(free), work - costs.start
        while (lost := lost_after(plan, chance)) < costs.start + left:
            failures += 1
            now += lost + plan.notice
            left -= max(0.0, lost - costs.start) // plan.save_every * plan.save_every
        heapq.heappush(free, now + costs.start + left)
    seconds = max(free)
    return Outcome(seconds, plan.chains * work / (seconds * min(plan.slots, plan.chains)), failures)


def lost_after(plan: Plan, chance: random.Random) -> float:
    """Seconds until a slot fails."""
    if math.isinf(plan.between_failures):
        return math.inf
    return chance.expovariate(1 / (plan.between_failures * HOUR))


def storage_rate(costs: Costs, plan: Plan) -> float:
    """Bytes a second that all running chains write together: samples and checkpoints."""
    seconds = work_of(costs, plan)
    checkpoints = plan.samples + seconds / plan.save_every
    written = plan.samples * costs.sample_bytes + checkpoints * costs.checkpoint_bytes
    return min(plan.slots, plan.chains) * written / seconds


def record_costs(measured: dict[str, Any], samples: int) -> dict[str, float]:
    """Of a run of so many samples: to open its list, and what all its checkpoints write of the
    list."""
    open_each, bytes_each = measured["open_seconds_each"], measured["checkpoint_bytes_each"]
    return {"open_seconds": samples * open_each, "checkpoint_bytes": samples * bytes_each,
            "all_checkpoints_bytes": samples * (samples + 1) / 2 * bytes_each}


def wires(measured: dict[str, Any]) -> dict[str, Wire]:
    """Measured: two processes on this machine. Assumed: what data sheets say of networks."""
    gloo = Wire(measured["latency"], measured["bandwidth"])
    return {"gloo, this machine": gloo, "10 Gbit/s": Wire(50e-6, 1.25e9), "100 Gbit/s": Wire(10e-6, 12.5e9),
            "NVLink": Wire(5e-6, 200e9)}


def two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.15g}"


def lines(record: dict[str, Any]) -> Iterator[str]:
    """The tables of the page."""
    for name, parts in record["costs"].items():
        costs = Costs(**parts)
        yield f"\n### {name}\n"
        yield "| ranks | " + " | ".join(wires(record["gloo"])) + " |"
        yield "|-|" + "-|" * len(wires(record["gloo"]))
        for ranks in (2, 8, 100):
            gains = [costs.step / step_across(costs, ranks, wire) for wire in wires(record["gloo"]).values()]
            yield f"| {ranks} | " + " | ".join(f"{two_digits(gain)}×" for gain in gains) + " |"
        yield "\n| chains | slots | a slot is lost every | hours | of the slots' time kept | failures | MB/s written |"
        yield "|-|-|-|-|-|-|-|"
        for plan in PLANS:
            outcome = simulate(costs, plan)
            often = f"{plan.between_failures:g} h" if math.isfinite(plan.between_failures) else "never"
            rate = storage_rate(costs, plan) / 1e6
            yield (f"| {plan.chains:,} | {plan.slots:,} | {often} | {outcome.seconds / HOUR:.2f} | {outcome.busy:.0%} | "
                   f"{outcome.failures:,} | {rate:,.1f} |")
    yield "\n### A vocabulary of 10⁶ words, 200 units, embedding and softmax\n"
    for name, wire in wires(record["gloo"]).items():
        yield f"- {name}: {two_digits(all_reduce(FLOAT * 2 * 200 * 10**6, 8, wire))} s for each step of 8 ranks"
    yield "\n| samples of a run | opening its list | the list in one checkpoint | in all checkpoints |"
    yield "|-|-|-|-|"
    for samples in (10**3, 10**4, 10**5, 10**6):
        found = record_costs(record["store"], samples)
        yield (f"| {samples:,} | {two_digits(found['open_seconds'])} s | "
               f"{two_digits(found['checkpoint_bytes'] / 1e6)} MB | "
               f"{two_digits(found['all_checkpoints_bytes'] / 1e9)} GB |")


CHAIN = Plan(chains=8, slots=8, steps=20_000, samples=50)
PLANS = (
    CHAIN,
    replace(CHAIN, chains=100, slots=100, between_failures=24.0),
    replace(CHAIN, chains=1000, slots=100, between_failures=24.0),
    replace(CHAIN, chains=1000, slots=1000, between_failures=1.0),
)


def refreshed(page: str, record: dict[str, Any]) -> str:
    """The page with its tables made anew."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n" + "\n".join(lines(record)).strip() + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text("utf-8"), json.loads(RESULTS.read_text())), "utf-8")
