"""Planted bugs: each must make the check of the table raise, for every sampler that it can befall.

The mathematics of a sampler is a plain function (θ, ḡ, ξ, …, *, lr, num_data, prior_var,
temperature, …), so a mutant is the same function with bent arguments. The fused kernels bypass
these functions; mutants run with `fused=False`. The temperature is ½ because at 1 a forgotten
temperature is invisible.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

from langevin.samplers import SAMPLERS, Sampler, sgnht
from tests.samplers.targets import check_first_momentum, check_gaussian

Bend = Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]

MUTANTS: dict[str, Bend] = {
    "noise √2 too large": lambda noise, s: (noise * math.sqrt(2), s),
    "noise without temperature": lambda noise, s: (noise, s | {"temperature": 1.0}),
    "noise scaled by 1/N": lambda noise, s: (noise / math.sqrt(s["num_data"]), s),
    "prior with the wrong sign": lambda noise, s: (noise, s | {"prior_var": -s["prior_var"]}),
    "prior not divided by N": lambda noise, s: (noise, s | {"prior_var": s["prior_var"] / s["num_data"]}),
}


def plant(monkeypatch: pytest.MonkeyPatch, name: str, bend: Bend) -> list[int]:
    """Bend the update of one sampler; the list grows by one at every call, to prove that the mutant
    was in the path."""
    calls: list[int] = []
    within = name == "sgnht"  # whose thermostat is to know nothing of it
    original: Any = sgnht.sghmc_ if within else SAMPLERS[name].update

    def mutant(theta: Any, grad: Any, noise: Any, *state: Any, **settings: Any) -> Any:
        calls.append(1)
        noise, settings = bend(noise, settings)
        return original(theta, grad, noise, *state, **settings)

    if within:
        monkeypatch.setattr(sgnht, "sghmc_", mutant)
    else:
        monkeypatch.setattr(SAMPLERS[name], "update", staticmethod(mutant))
    return calls


@pytest.mark.parametrize("name", SAMPLERS)
def test_control_passes(monkeypatch, name):
    """Wrapped but not bent, at the size of the mutants' runs: the failures below come from the bugs
    alone."""
    calls = plant(monkeypatch, name, lambda noise, settings: (noise, settings))
    check_gaussian(name, 0.5, chains=512, fused=False)
    assert calls


@pytest.mark.parametrize("bug", MUTANTS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_mutant_is_caught(monkeypatch, name, bug):
    calls = plant(monkeypatch, name, MUTANTS[bug])
    with pytest.raises(AssertionError, match=r"\|z\| ≥"):
        check_gaussian(name, 0.5, chains=512, fused=False)
    assert calls


@pytest.mark.parametrize("name", ["sghmc", "sgnht"])
def test_first_momentum_without_temperature_is_caught(monkeypatch, name):
    original = Sampler.first_momentum

    def mutant(self, theta, group, number):
        return original(self, theta, group | {"temperature": 1.0}, number)

    monkeypatch.setattr(Sampler, "first_momentum", mutant)
    with pytest.raises(AssertionError, match=r"\|z\| ≥"):
        check_first_momentum(name, 0.5, fused=False)
