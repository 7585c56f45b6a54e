"""Rows that were left out of the batch catch up with the law of the steps they missed.

Every column of a row is an independent chain, so one run gives `CHAINS` draws of each row at each
visit; a scalar recursion over the dense steps gives the exact mean, variance and covariance between
visits. Where torch's dense gradient freezes G too (adagrad with zero gradients), the dense sampler
passes the same check. z-scores are refused at |z| ≥ 5; the seeds are fixed.
"""

import math

import pytest
import torch

from langevin.samplers import PSGLD, SGLD, clocks
from langevin.samplers.clocks import FrozenClock, FrozenMove, SharedClock, SharedMove, frozen_move
from langevin.samplers.psgld import gain_ceiling

CHAINS, START, PUSH = 6000, 2.0, 0.4
VISITS = [{1, 5, 6, 23}, {23}, set(), {0}]
"""In which steps each row is in the batch; after the last all rows are read."""
STEPS = 24
SCHEDULES = {
    "constant": [(0.05, 0.7)] * STEPS,
    "lr changes at every step": [(0.08 * 0.9**t, 1.0) for t in range(STEPS)],
    "temperature jumps": [(0.05, (1.0, 0.0, 0.25)[t // 8]) for t in range(STEPS)],
    "both drift": [(0.02 + 0.002 * t, t / STEPS) for t in range(STEPS)],
    "rests": [(0.0 if t % 3 else 0.1, 1.0) for t in range(STEPS)],
}
CASES = {
    "sgld": (SGLD, {"num_data": 3, "prior_var": 0.4}),
    "sgld flat": (SGLD, {"num_data": 3, "prior_var": None}),
    "psgld rmsprop": (PSGLD, {"num_data": 3, "prior_var": 0.4, "beta": 0.5, "eps": 0.3}),
    "psgld adagrad": (PSGLD, {"num_data": 3, "prior_var": 0.4, "preconditioner": "adagrad", "eps": 0.3}),
    "psgld ceiling": (PSGLD, {"num_data": 3, "prior_var": 0.4, "preconditioner": "adagrad", "ceiling": 1.2}),
    "psgld flat": (PSGLD, {"num_data": 3, "prior_var": None, "eps_inside": True, "eps": 0.2}),
}
DENSE = ["sgld", "sgld flat", "psgld adagrad", "psgld ceiling"]


def sparse(rows, values, height):
    return torch.sparse_coo_tensor(rows[None], values, (height, values.shape[1]), check_invariants=True)


def run(case, schedule, dense=False, fused=None, chains=CHAINS):
    """θ of every row at each of its visits (as read by the forward pass) and at the end: {(row,
    step): values}."""
    kind, settings = CASES[case]
    weight = torch.nn.Parameter(torch.full((len(VISITS), chains), START, dtype=torch.float64))
    sampler = kind([weight], 1.0, temperature=1.0, seed=11, fused=fused, **settings)
    read = {}
    for step, (lr, temperature) in enumerate(SCHEDULES[schedule]):
        rows = torch.tensor([row for row, visits in enumerate(VISITS) if step in visits], dtype=torch.int64)
        sampler.param_groups[0].update(lr=lr, temperature=temperature)
        sampler.catch_up(weight, rows)
        read |= {(row, step): weight[row].detach().clone() for row in rows.tolist()}
        grad = sparse(rows, torch.full((len(rows), chains), PUSH, dtype=torch.float64), len(weight))
        weight.grad = grad.to_dense() if dense else grad
        sampler.step()
    sampler.catch_up_all()
    return read | {(row, STEPS): weight[row].detach() for row in range(len(VISITS))}


def expected(case, schedule, row):
    """Mean, variance and the product of the factors a, before each step: dense steps, G frozen
    between visits."""
    kind, settings = CASES[case]
    pull = 0.0 if settings["prior_var"] is None else 1 / (settings["num_data"] * settings["prior_var"])
    mean, variance, product, moment = START, 0.0, 1.0, 0.0
    law = [(mean, variance, product)]
    eps, inside = settings.get("eps", 1e-8), settings.get("eps_inside", False)
    for step, (lr, temperature) in enumerate(SCHEDULES[schedule]):
        push, gain = (PUSH if step in VISITS[row] else 0.0), 1.0
        if kind is PSGLD:
            beta = settings.get("beta", 0.99)
            if settings.get("preconditioner") == "adagrad":
                moment += push**2
            elif push:
                moment = beta * moment + (1 - beta) * push**2
            root = math.sqrt(moment + eps) if inside else math.sqrt(moment) + eps
            ceiling = gain_ceiling({"ceiling": None, "temperature": temperature} | settings)
            gain = min(1 / root, ceiling)
        a = 1 - lr * gain * pull
        mean = a * mean - lr * gain * push
        variance = a * a * variance + 2 * lr * temperature * gain / settings["num_data"]
        product *= a
        law.append((mean, variance, product))
    return law


def check_law(case, schedule, **how):
    read, worst = run(case, schedule, **how), 0.0
    for (row, step), values in read.items():
        law = expected(case, schedule, row)
        mean, variance, product = law[step]
        if variance == 0:
            torch.testing.assert_close(values, torch.full_like(values, mean))
            continue
        centred = values - mean
        z = [centred.mean() / math.sqrt(variance / CHAINS)]
        z.append((centred.square().mean() / variance - 1) / math.sqrt(2 / CHAINS))
        for (other, earlier), before in read.items():
            if other == row and earlier < step and law[earlier][1] > 0:
                shared = law[earlier][1] * product / law[earlier][2]
                noise = math.sqrt((law[earlier][1] * variance + shared**2) / CHAINS)
                z.append((((before - law[earlier][0]) * centred).mean() - shared) / noise)
        worst = max(worst, *(abs(float(value)) for value in z))
    assert worst < 5, f"|z| = {worst:.1f}"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES)
def test_law_of_missed_steps(case, schedule):
    check_law(case, schedule)


@pytest.mark.parametrize(("case", "schedule"), [("sgld", "both drift"), ("psgld adagrad", "temperature jumps")])
def test_law_without_kernels(case, schedule):
    """The ground on which the planted bugs below stand."""
    check_law(case, schedule, fused=False)


@pytest.mark.parametrize("schedule", ["constant", "both drift"])
@pytest.mark.parametrize("case", DENSE)
def test_dense_sampler_has_the_same_law(case, schedule):
    check_law(case, schedule, dense=True)


def forget_a_step(monkeypatch):
    for clock in (SharedClock, FrozenClock):
        moves = clock.moves
        monkeypatch.setattr(
            clock, "moves", lambda self, since, moves=moves: moves(self, (since + 1).clamp(max=self.now))
        )


def forget_the_square(monkeypatch):
    def moves(self, since):
        log_shrink, variance = self.ledger.table[since].unbind(1)
        decay = torch.exp(self.log_shrink - log_shrink)
        yield 0, SharedMove(decay, torch.sqrt((self.variance - decay * variance).clamp(min=0)))

    monkeypatch.setattr(SharedClock, "moves", moves)

    def move(gain, sums, pull, num_data):
        decay, deviation = frozen_move(gain, sums, pull, num_data)
        return decay, deviation * torch.sqrt(1 + decay)

    monkeypatch.setattr(clocks, "frozen_move", move)


def do_not_shrink(monkeypatch):
    for move in (SharedMove, FrozenMove):
        expand = move.expand
        monkeypatch.setattr(
            move, "expand", lambda self, memory, expand=expand: (torch.ones(1, 1), expand(self, memory)[1])
        )


def ignore_the_gain(monkeypatch):
    monkeypatch.setattr(
        clocks, "frozen_move", lambda gain, *rest, **settings: frozen_move(torch.ones_like(gain), *rest, **settings)
    )


def use_the_present_temperature(monkeypatch):
    monkeypatch.setattr(clocks, "continues", lambda segment, settings: True)


@pytest.mark.parametrize(
    ("case", "schedule", "bug"),
    [
        ("sgld", "constant", forget_a_step), ("sgld", "constant", forget_the_square),
        ("sgld", "constant", do_not_shrink),
        ("psgld adagrad", "constant", forget_a_step), ("psgld adagrad", "constant", forget_the_square),
        ("psgld adagrad", "constant", do_not_shrink), ("psgld adagrad", "constant", ignore_the_gain),
        ("psgld adagrad", "temperature jumps", use_the_present_temperature),
    ],
)  # fmt: skip
def test_planted_bug_is_caught(monkeypatch, case, schedule, bug):
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"\|z\| ="):
        check_law(case, schedule, fused=False)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES)
def test_kernel_equals_plain(case, schedule):
    ours, theirs = (run(case, schedule, fused=fused, chains=50) for fused in (True, False))
    for key in ours:
        torch.testing.assert_close(ours[key], theirs[key], rtol=0 if "psgld" not in case else 1e-11, atol=1e-12)


def test_exact_after_a_hundred_thousand_steps_under_a_strong_prior():
    """No sum overflows or loses its digits: Πa is 10^(−15 490) here."""
    clock = SharedClock(torch.device("cpu"))
    settings = {"lr": 0.3, "prior_var": 0.5, "temperature": 0.5, "num_data": 2.0}
    for _ in range(100_000):
        clock.tick(settings)
    [(_, move)] = clock.moves(torch.tensor([99_999, 99_997, 0]))
    decay, deviation = move.expand([])
    a, s = 0.7, 0.15
    torch.testing.assert_close(decay[:, 0], torch.tensor([a, a**3, 0.0], dtype=torch.float64), rtol=1e-9, atol=0)
    variance = torch.tensor([s, s * (1 + a**2 + a**4), s / (1 - a**2)], dtype=torch.float64)
    torch.testing.assert_close(deviation[:, 0].square(), variance, rtol=1e-9, atol=0)


def test_frozen_move_is_the_product_of_its_steps():
    gain = torch.tensor([[0.0, 1e-12, 0.3, 1.0, 40.0]], dtype=torch.float64)
    lr, k, pull, n, temperature = 0.02, 17, 0.9, 5.0, 0.6
    sums = torch.tensor([[k * lr, k * lr**2, k * lr * temperature]], dtype=torch.float64)[:, :, None]
    decay, deviation = frozen_move(gain, sums, pull, n)
    theta, variance = torch.ones_like(gain), torch.zeros_like(gain)
    for _ in range(k):
        a = 1 - lr * gain * pull
        theta, variance = a * theta, a * a * variance + 2 * lr * gain * temperature / n
    torch.testing.assert_close(decay, theta, rtol=1e-12, atol=0)
    torch.testing.assert_close(deviation.square(), variance, rtol=1e-12, atol=1e-300)
    flat = frozen_move(gain, sums, 0.0, n)
    torch.testing.assert_close(flat[0], torch.ones_like(gain))
    torch.testing.assert_close(flat[1].square(), 2 * gain * k * lr * temperature / n)
    decay, deviation = frozen_move(gain, torch.zeros_like(sums), pull, n)
    assert torch.equal(decay, torch.ones_like(gain))
    assert not deviation.any()
    assert (frozen_move(1e9 * gain[:, 2:], sums, pull, n)[0] < 1e-15).all()
