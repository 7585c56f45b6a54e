"""The cost model: known answers, and the tables of the page from what was measured."""

import json
import math
from dataclasses import replace

import pytest

from benchmarks.scaling import (
    PAGE,
    PLANS,
    RESULTS,
    Costs,
    Plan,
    Wire,
    all_reduce,
    lines,
    record_costs,
    refreshed,
    simulate,
    step_across,
    storage_rate,
    work_of,
)

COSTS = Costs(step=0.1, update=0.01, weights=10**6, sample=0.0, sample_bytes=4 * 10**6, checkpoint=0.0,
              checkpoint_bytes=10**7, start=5.0)
PLAN = Plan(chains=10, slots=4, steps=1000, samples=0)


def test_a_ring_of_two_sends_half_twice():
    assert all_reduce(8, 2, Wire(0.0, 1.0)) == 8
    assert all_reduce(8, 2, Wire(1.0, math.inf)) == 2
    assert all_reduce(8, 8, Wire(0.0, 1.0)) == 14


def test_the_update_is_not_divided():
    free = Wire(0.0, math.inf)
    assert step_across(COSTS, 1, free) == pytest.approx(COSTS.step)
    assert step_across(COSTS, 10**6, free) == pytest.approx(COSTS.update, rel=1e-4)


def test_chains_fill_the_slots():
    assert work_of(COSTS, PLAN) == pytest.approx(105)
    outcome = simulate(COSTS, PLAN)
    assert outcome.seconds == pytest.approx(3 * 105)  # 4 + 4 + 2
    assert outcome.busy == pytest.approx(10 / 12)
    assert outcome.failures == 0


def test_failures_cost_what_was_not_saved():
    """Expected time of a chain: that of exponential failures with checkpoints at fixed
    distances."""
    plan = replace(PLAN, chains=4000, slots=4000, save_every=10.0, between_failures=50 / 3600, notice=2.0)
    outcome = simulate(COSTS, plan)
    assert outcome.seconds > 105
    mean = outcome.failures / plan.chains
    lost = math.expm1((COSTS.start + 10) / 50)  # failures until the first piece is kept
    assert mean == pytest.approx(lost + 9 * math.expm1(10 / 50) + mean_restarts(), rel=0.25)
    assert simulate(COSTS, plan) == outcome
    assert simulate(COSTS, plan, seed=1) != outcome


def mean_restarts():
    """Failures while starting again, after those of the nine later pieces."""
    return 9 * math.expm1(10 / 50) * math.expm1(COSTS.start / 50)


def test_storage_and_lists_grow_as_they_should():
    more = replace(PLAN, samples=100)
    assert storage_rate(COSTS, more) > storage_rate(COSTS, PLAN)
    one, ten = (record_costs({"open_seconds_each": 1e-5, "checkpoint_bytes_each": 200.0}, n) for n in (1000, 10_000))
    assert ten["open_seconds"] == pytest.approx(10 * one["open_seconds"])
    assert ten["all_checkpoints_bytes"] == pytest.approx(100 * one["all_checkpoints_bytes"], rel=0.01)


def test_the_page_is_made_from_what_was_measured():
    record, page = json.loads(RESULTS.read_text()), PAGE.read_text("utf-8")
    text = "\n".join(lines(record))
    assert refreshed(page, record) == page
    assert all(f"| {plan.chains:,} | {plan.slots:,} |" in text for plan in PLANS)
