"""Target distributions, the exact laws of the samplers on them, z-scores, and the checks built from
these.

Every row of a parameter tensor is one independent chain, so the final rows are independent draws
and a z-score needs no estimate of an effective sample size. On a Gaussian target every sampler is a
linear recursion

    m ← (1−α)m − lr·G·(A·(θ−θ̂)) + N(0, Q),   θ ← θ + m,      A = Λ + I/(Nσ²),   Q = 2A₀·lr·T·G/N +
    (lr·G·τ)²

(α = A₀ = 1 for SGLD and pSGLD, G = I where nothing preconditions, τ the standard deviation of
gradient noise that the sampler is not told of), whose stationary covariance solves a discrete
Lyapunov equation. A thermostat's α is the one that makes (1−α/2)·⟨m²⟩/G equal lr·T/N: on average
over the tensor for SGNHT, weight by weight for Santa.
`posterior` is what that law tends to as lr → 0; `test_law_tends_to_the_posterior` holds the two
together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import solve_discrete_lyapunov
from scipy.optimize import root
from torch import Tensor

from langevin.samplers import SAMPLERS, Sampler

LIMIT = 5.5
"""|z| beyond this is a failure; the arithmetic is in test_all_samplers.py."""


every_sampler = pytest.mark.parametrize("name", SAMPLERS)
kernel_and_plain = pytest.mark.parametrize("fused", [None, False], ids=["kernel", "plain"])
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def make(name: str, params: Any, *, fused: bool | None = None, **settings: Any) -> Sampler:
    """A sampler by name, of seed 0."""
    return SAMPLERS[name](params, fused=fused, **{"seed": 0} | settings)


def parameter(*shape: int, dtype: torch.dtype = torch.float32) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.zeros(shape, dtype=dtype))


@dataclass(frozen=True)
class Gaussian:
    """U(θ) = N/2·(θ−μ)ᵀΛ(θ−μ) + θᵀθ/(2σ²)"""

    precision: np.ndarray
    centre: np.ndarray
    num_data: float
    prior_var: float

    @property
    def curvature(self) -> np.ndarray:
        return self.precision + np.eye(len(self.centre)) / (self.num_data * self.prior_var)

    @property
    def mean(self) -> np.ndarray:
        return np.linalg.solve(self.curvature, self.precision @ self.centre)

    def posterior(self, temperature: float) -> np.ndarray:
        return temperature / self.num_data * np.linalg.inv(self.curvature)

    def gradient(self, theta: Tensor) -> Tensor:
        """ḡ of each row, of the likelihood alone: the prior is the sampler's business."""
        return (theta - theta.new_tensor(self.centre)) @ theta.new_tensor(self.precision)


CORRELATED = Gaussian(np.array([[1.0, 0.6], [0.6, 1.5]]), np.array([1.0, -0.5]), num_data=40.0, prior_var=0.05)
"""Correlation −0.35 after the prior, whose pull 1/(Nσ²) = ½ is as strong as the weaker half of the
likelihood."""


@dataclass(frozen=True)
class Case:
    """One sampler, set up so that its law on `CORRELATED` is reached in `steps` from a start at
    zero."""

    name: str
    lr: float
    steps: int
    injected: float = 1.0
    """A₀; 1 without momentum."""
    gain: tuple[float, ...] = (1.0, 1.0)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def preconditioned(self) -> bool:
        return self.name in ("psgld", "santa")

    @property
    def thermostatted(self) -> bool:
        return self.name in ("sgnht", "santa")

    def law(self, target: Gaussian, temperature: float, gradient_std: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """(stationary covariance of (θ, m), friction per coordinate)"""
        gain = np.array(self.gain) if self.preconditioned else np.ones(len(target.centre))
        warmth = self.lr * temperature / target.num_data
        noise = 2 * self.injected * warmth * gain + (self.lr * gain * gradient_std) ** 2

        def covariance(friction: np.ndarray) -> np.ndarray:
            pull, keep = self.lr * gain[:, None] * target.curvature, np.diag(1 - friction)
            recursion = np.block([[np.eye(len(gain)) - pull, keep], [-pull, keep]])
            return solve_discrete_lyapunov(recursion, np.kron(np.ones((2, 2)), np.diag(noise)))

        def imbalance(friction: np.ndarray) -> np.ndarray:
            heat = (1 - friction / 2) * np.diag(covariance(friction))[len(gain) :] / (gain * warmth) - 1
            return heat if self.name == "santa" else heat.mean() + friction - friction.mean()

        friction = np.full(len(gain), self.injected)
        if self.thermostatted:
            guess = friction + (self.lr * gain * gradient_std) ** 2 / (2 * gain * warmth)
            friction = root(imbalance, guess, tol=1e-10).x
        return covariance(friction), friction


MOMENTUM = {"friction": 0.3}
FIXED_GAIN = {"beta": 1 - 1e-6}
"""With v set up front, β this near 1 keeps G constant to 0.1 % over a run, which is when the law is
exact."""
CASES = {
    "sgld": Case("sgld", lr=0.1, steps=130),
    "psgld": Case("psgld", lr=0.1, steps=180, gain=(0.6, 1.5), settings=FIXED_GAIN),
    "sghmc": Case("sghmc", lr=0.1, steps=130, injected=0.3, settings=MOMENTUM),
    "sgnht": Case("sgnht", lr=0.1, steps=250, injected=0.3, settings=MOMENTUM | {"thermostat_rate": 0.01}),
    "santa": Case(
        "santa", lr=0.1, steps=1200, injected=0.3, gain=(0.6, 1.5),
        settings=MOMENTUM | FIXED_GAIN | {"thermostat_rate": 2e-3, "anneal": 0.0},
    ),
}


@dataclass(frozen=True)
class Run:
    theta: np.ndarray
    momentum: np.ndarray | None
    friction: Tensor | None


def run_chains(
    case: Case, target: Gaussian, *, temperature: float, chains: int, seed: int = 0, gradient_std: float = 0.0,
    gradient: Any = None, fused: bool | None = None, dtype: torch.dtype = torch.float32,
) -> Run:
    """All chains from zero for `case.steps` steps."""
    theta = parameter(chains, len(target.centre), dtype=dtype)
    sampler = make(
        case.name, [theta], fused=fused, lr=case.lr, num_data=target.num_data, prior_var=target.prior_var,
        temperature=temperature, seed=seed, **case.settings,
    )
    if case.preconditioned:
        fix_gain(sampler, theta, case.gain)
    generator = torch.Generator().manual_seed(seed)
    gradient = gradient or target.gradient
    for _ in range(case.steps):
        theta.grad = gradient(theta.detach())
        if gradient_std:
            theta.grad += gradient_std * torch.randn(theta.shape, generator=generator, dtype=dtype)
        sampler.step()
    state = sampler.state[theta]
    momentum = state["momentum"].double().numpy() if "momentum" in state else None
    return Run(theta.detach().double().numpy(), momentum, state.get("friction"))


def fix_gain(sampler: Sampler, theta: torch.nn.Parameter, gain: tuple[float, ...]) -> None:
    """Make the state by one step at lr = 0, which moves nothing, and set v = 1/G²."""
    group = sampler.param_groups[0]
    lr, group["lr"] = group["lr"], 0.0
    theta.grad = torch.zeros_like(theta)
    sampler.step()
    assert not theta.any()
    group["lr"] = lr
    sampler.state[theta]["second_moment"].copy_(theta.new_tensor(gain) ** -2)


def variance_z(ratio: float, n: int) -> float:
    """z of a mean of n squared standard normals, by Wilson and Hilferty's cube root.

    (ratio − 1)·√(n/2) would be too skew: at n = 512 it passes 5.5 eight times as often as a normal
    does.
    """
    return (float(ratio) ** (1 / 3) - 1 + 2 / (9 * n)) * math.sqrt(9 * n / 2)


def gaussian_z(samples: np.ndarray, mean: np.ndarray, covariance: np.ndarray, label: str = "θ") -> dict[str, float]:
    """z of the mean, of variances and covariances, and of the temperature ⟨xᵀΣ⁻¹x⟩/d, for
    independent rows."""
    n, d = samples.shape
    variance = np.diag(covariance)
    # a diverged mutant is to fail by its z-score, which is then NaN
    with np.errstate(all="ignore"):
        x = samples - mean
        mean_z = x.mean(0) / np.sqrt(variance / n)
        products = x.T @ x / n
        covariance_z = (products - covariance) / np.sqrt((np.outer(variance, variance) + covariance**2) / n)
        heat = np.sum(x @ np.linalg.inv(covariance) * x) / (n * d)
    return {
        **{f"mean {label}{i}": mean_z[i] for i in range(d)},
        **{f"var {label}{i}": variance_z(products[i, i] / variance[i], n) for i in range(d)},
        **{f"cov {label}{i}{label}{j}": covariance_z[i, j] for i in range(d) for j in range(i)},
        f"temperature {label}": variance_z(heat, n * d),
    }


def law_z(case: Case, target: Gaussian, run: Run, temperature: float, gradient_std: float = 0.0) -> dict[str, float]:
    """z of positions, momenta and thermostats of a finished run against the exact law.

    A thermostat over n weights fluctuates with variance γ/n around its fixed point. Santa's, one
    per weight, fluctuate enough (√γ each) to feel the curvature of the balance: their mean is off
    by some γ (measured −0.7γ), so γ joins the standard error there.
    """
    covariance, friction = case.law(target, temperature, gradient_std)
    d = len(target.centre)
    z = gaussian_z(run.theta, target.mean, covariance[:d, :d])
    if run.momentum is not None:
        z |= gaussian_z(run.momentum, np.zeros(d), covariance[d:, d:], "m")
    if run.friction is not None:
        rate = case.settings["thermostat_rate"]
        error = math.sqrt(rate / run.theta.size) + (rate if case.name == "santa" else 0.0)
        z["friction"] = (float(run.friction.mean()) - friction.mean()) / error
    return z


def normal_z(x: Tensor, variance: float) -> dict[str, float]:
    """z of mean and variance of independent N(0, variance) numbers."""
    flat = x.detach().double().flatten()
    n = flat.numel()
    return {
        "mean": float(flat.mean()) / math.sqrt(variance / n),
        "variance": variance_z(float(flat.square().mean()) / variance, n),
    }


def assert_z(z: dict[str, float]) -> None:
    """NaN fails too."""
    bad = {name: round(float(value), 1) for name, value in z.items() if not abs(value) < LIMIT}
    assert not bad, f"|z| ≥ {LIMIT}: {bad}"


def check_gaussian(name: str, temperature: float, *, chains: int = 2048, seed: int = 0, **how: Any) -> None:
    """Mean, covariance and temperature on the correlated target; also those of the momenta, and the
    friction."""
    run = run_chains(CASES[name], CORRELATED, temperature=temperature, chains=chains, seed=seed, **how)
    assert_z(law_z(CASES[name], CORRELATED, run, temperature))


def check_first_momentum(name: str, temperature: float, *, fused: bool | None = None) -> None:
    """With next to no friction and no gradient, the first displacement is the first momentum: N(0,
    lr·T/N)."""
    theta = parameter(64, 64)
    theta.grad = torch.zeros_like(theta)
    make(name, [theta], fused=fused, lr=0.1, num_data=40, temperature=temperature, friction=1e-12).step()
    assert_z(normal_z(theta, 0.1 * temperature / 40))
