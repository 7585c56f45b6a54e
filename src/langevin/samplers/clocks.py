"""What an embedding row goes through while it is outside the batch, in closed form.

A step of zero gradient is θ ← aθ + sξ with a = 1 − lr·G/(Nσ²) and s² = 2·lr·T·G/N. A clock notes
the settings of each step in running sums and says, for rows that were last seen at some earlier
tick, which one step of the same kind has the law of all they missed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from .checks import Settings
from .prior import prior_pull


SAME_TEMPERATURE = 0.01
"""Within this relative distance temperatures share a segment of `FrozenClock`, at their mean."""
TINY = 1e-150
"""Keeps rows that missed nothing from 0/0; what it multiplies is 0 there."""


class Move(Protocol):
    """θ ← decay·θ + deviation·ξ for some rows, as plain numbers and as a kernel."""

    kernel: ClassVar[str]

    @property
    def noisy(self) -> bool:
        """False at temperature 0, where no noise need be drawn."""

    def expand(self, memory: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Decay and deviation in float64, for each row or each weight."""

    def arguments(self, theta: Tensor, memory: list[Tensor]) -> tuple[tuple[Tensor, ...], Settings]:
        """What the kernel takes after θ and rows, and its settings; `memory` is that of all
        rows."""


class Clock(Protocol):
    """What happens to a row outside the batch. Ticks once for each step of its parameter."""

    now: int

    def tick(self, settings: Settings) -> None: ...

    def moves(self, since: Tensor) -> Iterator[tuple[int, Move]]:
        """From the ticks `since` (one for each row) until now, in a few numbered moves."""


class Ledger:
    """Running sums after each tick, in float64, in a table that grows by doubling."""

    def __init__(self, columns: int, device: torch.device) -> None:
        self.table = torch.zeros(64, columns, dtype=torch.float64, device=device)

    def write(self, tick: int, sums: tuple[float, ...]) -> None:
        if tick == len(self.table):
            self.table = torch.cat([self.table, torch.zeros_like(self.table)])
        self.table[tick] = torch.tensor(sums, dtype=torch.float64)


class SharedClock:
    """SGLD: one shrink factor and one variance for all weights, exact for every schedule of lr and
    temperature.

    After t ticks, L = Σ log a, and V = a²V + s² is the variance of a weight that started at 0. From
    tick s to t a weight shrinks by P = exp(L_t − L_s) and gains the variance V_t − P²V_s. Neither
    sum overflows under a strong prior, and the difference keeps a relative precision of 10⁻¹⁶·t/k.
    """

    def __init__(self, device: torch.device) -> None:
        self.now, self.log_shrink, self.variance = 0, 0.0, 0.0
        self.ledger = Ledger(2, device)

    def tick(self, settings: Settings) -> None:
        pull = settings["lr"] * prior_pull(settings["num_data"], settings["prior_var"])
        if pull >= 1:
            raise ValueError(f"lr/(N·prior_var) must be below 1 with sparse gradients, got {pull}; lower lr")
        self.log_shrink += math.log1p(-pull)
        self.variance *= (1 - pull) ** 2
        self.variance += 2 * settings["lr"] * settings["temperature"] / settings["num_data"]
        self.now += 1
        self.ledger.write(self.now, (self.log_shrink, self.variance))

    def moves(self, since: Tensor) -> Iterator[tuple[int, Move]]:
        log_shrink, variance = self.ledger.table[since].unbind(1)
        decay = torch.exp(self.log_shrink - log_shrink)
        deviation = torch.sqrt((self.variance - decay.square() * variance).clamp(min=0))
        yield 0, SharedMove(decay, deviation)


@dataclass
class SharedMove:
    """One decay and one deviation for all weights of a row."""

    decay: Tensor
    deviation: Tensor
    kernel: ClassVar[str] = "shared_rows"

    @property
    def noisy(self) -> bool:
        return bool(self.deviation.any())

    def expand(self, memory: list[Tensor]) -> tuple[Tensor, Tensor]:
        return self.decay[:, None], self.deviation[:, None]

    def arguments(self, theta: Tensor, memory: list[Tensor]) -> tuple[tuple[Tensor, ...], Settings]:
        return (self.decay.to(theta.dtype), self.deviation.to(theta.dtype)), {}


class FrozenClock:
    """PSGLD: every weight has its own gain G, which stands still while the row is outside the
    batch.

    Running sums of lr, lr² and lr·T turn a stretch of steps into k = (Σlr)²/Σlr² steps at the one
    rate Σlr²/Σlr and the one temperature Σ(lr·T)/Σlr: exact while both are constant, and under a
    changing rate exact to the second order in a = 1 − lr·G/(Nσ²). A change of temperature (or of
    any other setting) by more than 1% starts a new segment, and a row goes through the segments it
    missed one after the other.
    """

    def __init__(self, device: torch.device, gain: Callable[..., Tensor]) -> None:
        self.now, self.gain = 0, gain
        self.sums = (0.0, 0.0, 0.0)
        self.ledger = Ledger(3, device)
        self.starts: list[int] = []
        self.segments: list[Settings] = []

    def tick(self, settings: Settings) -> None:
        if not self.segments or not continues(self.segments[-1], settings):
            self.starts.append(self.now)
            self.segments.append(settings)
        lr, temperature = settings["lr"], settings["temperature"]
        self.sums = (self.sums[0] + lr, self.sums[1] + lr * lr, self.sums[2] + lr * temperature)
        self.now += 1
        self.ledger.write(self.now, self.sums)

    def moves(self, since: Tensor) -> Iterator[tuple[int, Move]]:
        earliest = bisect_right(self.starts, int(since.min())) - 1
        for number in range(earliest, len(self.segments)):
            end = self.starts[number + 1] if number + 1 < len(self.starts) else self.now
            sums = self.ledger.table[end] - self.ledger.table[since.clamp(min=self.starts[number], max=end)]
            yield number, FrozenMove(sums, self.gain, self.segments[number])


def continues(segment: Settings, settings: Settings) -> bool:
    """Whether a step belongs to a segment: the same but for its lr and a hair of temperature (and
    what hangs on it)."""
    first, other = segment["temperature"], settings["temperature"]
    same = all(segment[k] == settings[k] for k in ("prior_var", "num_data", "eps", "eps_inside"))
    ceilings = math.isclose(segment["ceiling"], settings["ceiling"], rel_tol=SAME_TEMPERATURE)
    return same and ceilings and abs(first - other) <= SAME_TEMPERATURE * first


@dataclass
class FrozenMove:
    """k steps θ ← aθ + sξ at once, for weights whose gain stands still."""

    sums: Tensor
    """Σlr, Σlr² and Σlr·T of each row."""
    gain: Callable[..., Tensor]
    settings: Settings
    kernel: ClassVar[str] = "frozen_rows"

    @property
    def noisy(self) -> bool:
        return bool(self.sums[:, 2].any())

    def expand(self, memory: list[Tensor]) -> tuple[Tensor, Tensor]:
        gain = self.gain(memory[0].double(), **self.chosen("eps", "eps_inside", "ceiling"))
        n, prior_var = self.settings["num_data"], self.settings["prior_var"]
        return frozen_move(gain, self.sums[:, :, None], prior_pull(n, prior_var), n)

    def arguments(self, theta: Tensor, memory: list[Tensor]) -> tuple[tuple[Tensor, ...], Settings]:
        chosen = self.chosen("prior_var", "num_data", "eps", "eps_inside", "ceiling")
        return (memory[0], self.sums), chosen | {"tiny": TINY}

    def chosen(self, *names: str) -> Settings:
        return {name: self.settings[name] for name in names}


def frozen_move(gain: Tensor, sums: Tensor, pull: float, num_data: float) -> tuple[Tensor, Tensor]:
    """θ ← aᵏθ + s·√((1−a²ᵏ)/(1−a²))·ξ,   a = 1 − lr·G/(Nσ²),   s² = 2·lr·T·G/N

    `sums` are Σlr, Σlr² and Σlr·T of each row, of which k, lr and T are made (see `FrozenClock`);
    `pull` is 1/(Nσ²). A pull of more than a whole step (lr·G > Nσ²), which the steps one by one
    would overshoot, ends at 0.
    """
    total, squares, heat = sums.unbind(1)
    k, rate = total.square() / squares.clamp(min=TINY) + TINY, squares / total.clamp(min=TINY)
    y = (gain * pull * rate).clamp(min=TINY, max=1 - 1e-16)
    log_decay = k * torch.log1p(-y)
    # of the noise, what later shrinking leaves
    share = -torch.expm1(2 * log_decay) / (k * y * (2 - y))
    return torch.exp(log_decay), torch.sqrt(2 * heat / num_data * gain * share)
