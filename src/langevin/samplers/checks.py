"""What a sampler refuses, with what was expected, what came and what to do."""

from __future__ import annotations

import math
from collections.abc import Set
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

Group = dict[str, Any]
"""A parameter group, as torch has it."""
Settings = dict[str, Any]
"""Keyword arguments of an update, plain and compiled."""

OF_SOME = {
    "preconditioner", "beta", "eps", "eps_inside", "ceiling", "friction", "thermostat_rate",
    "anneal", "explore",
}  # fmt: skip
"""Settings that not all samplers have, by which the state of one is told from that of another."""
FOREIGN = {
    "weight_decay", "momentum", "dampening", "nesterov", "alpha", "centered", "betas", "amsgrad",
    "lr_decay", "maximize",
}  # fmt: skip
"""Settings of torch's optimisers that no sampler has."""


def require(holds: bool, name: str, expected: str, got: object, remedy: str) -> None:
    """Raise ValueError 'name must be expected, got …; remedy' unless it holds. NaN never holds."""
    if not holds:
        raise ValueError(f"{name} must be {expected}, got {got}; {remedy}")


def check_group(group: Group) -> None:
    """The settings that all samplers share."""
    for name in ("num_data", "lr", "temperature", "prior_var"):
        value = group[name]
        number = isinstance(value, Real | Tensor) or (name == "prior_var" and value is None)
        require(number, name, "a number", repr(value), "pass it as int or float")
    for name, remedy in (
        ("lr", "pass a learning rate such as 1e-3"),
        ("temperature", "pass 1 for the posterior or 0 for the optimiser twin"),
    ):
        require(0 <= group[name] < math.inf, name, "finite, zero or positive", group[name], remedy)
    require(
        0 < group["num_data"] < math.inf, "num_data", "positive and finite", group["num_data"],
        "pass the number of training terms",
    )
    require(
        group["prior_var"] is None or group["prior_var"] > 0, "prior_var", "positive or None",
        group["prior_var"], "pass None for a flat prior",
    )
    require(
        isinstance(group["seed"], Integral) and 0 <= int(group["seed"]) < 2**64, "seed",
        "in [0, 2⁶⁴)", group["seed"], "pass a non-negative integer",
    )
    for parameter in group["params"]:
        require(
            parameter.dtype in (torch.float32, torch.float64), "parameters", "float32 or float64",
            parameter.dtype, "convert the model with .float()",
        )


def check_names(group: Group, own: Set[str]) -> None:
    """Settings that this sampler has not, refused where they would have done something."""
    check_foreign(group, FOREIGN, own)
    for name in group.keys() - own - FOREIGN:  # libraries and schedulers add keys of their own
        meant = get_close_matches(name, own, 1, cutoff=0.8)
        require(
            not meant, name, "a setting of this sampler", group[name],
            f"did you mean {', '.join(meant)}?",
        )


def check_foreign(group: Group, foreign: Set[str], own: Set[str]) -> None:
    """Settings of torch's optimisers, refused unless they are off."""
    for name in sorted(foreign):
        value = group.get(name)
        require(not value, name, "left out or 0", value, instead_of(name, value, group, own))


def instead_of(name: str, value: Any, group: Group, own: Set[str]) -> str:
    """What does here what a setting of torch's optimisers does there."""
    number = isinstance(value, Real) and float(value) > 0
    if name == "weight_decay":
        computed = f" = {1 / (group['num_data'] * value):.6g}" if number else ""
        return f"a prior decays weights here: prior_var = 1/(N·weight_decay){computed}"
    if name == "momentum" and "friction" in own:
        computed = f" = {1 - value:.6g}" if number else ""
        return f"what is kept of the momentum is set by friction = 1 − momentum{computed}"
    if name == "maximize":
        return "negate the loss"
    return f"the settings of this sampler are {', '.join(sorted(own))}"


def check_arguments(cls: type, given: Set[str], own: Set[str]) -> None:
    """Arguments that neither this sampler nor any optimiser of torch has."""
    for name in sorted(given - own - FOREIGN):
        meant = get_close_matches(name, own, 1)
        hint = f"did you mean {meant[0]}?" if meant else f"it takes {', '.join(sorted(own))}"
        raise TypeError(f"{cls.__name__} expected settings that it knows, got {name}; {hint}")


def check_state(cls: type, groups: list[Group], own: Set[str]) -> None:
    """Saved groups must be those of the same kind of sampler."""
    there = {name for group in groups for name in group}
    for what, names in (("without", own - there), ("with", (OF_SOME & there) - own)):
        require(
            not names, "state_dict", f"of a {cls.__name__}",
            f"one {what} {', '.join(sorted(names))}",
            "load what the same kind of sampler saved; weights alone need no state of their "
            "optimiser",
        )
    for group in groups:  # momentum may have been written by a scheduler
        check_foreign(group, FOREIGN - {"momentum"}, own)


def check_friction(group: Group) -> None:
    """Of the samplers with momentum."""
    require(
        0 < group["friction"] <= 1, "friction", "in (0, 1]", group["friction"],
        "0.1 is momentum 0.9",
    )


def check_thermostat(group: Group) -> None:
    """Of SGNHT and Santa."""
    require(
        group["thermostat_rate"] >= 0, "thermostat_rate", "zero or positive",
        group["thermostat_rate"], "1e-3 adapts over some hundred steps",
    )


def check_preconditioner(group: Group) -> None:
    """Of PSGLD and Santa."""
    require(
        group["preconditioner"] in ("rmsprop", "adagrad"), "preconditioner",
        "'rmsprop' or 'adagrad'", repr(group["preconditioner"]), "choose one of the two",
    )
    require(0 <= group["beta"] < 1, "beta", "in [0, 1)", group["beta"], "0.99 is usual")
    require(group["eps"] >= 0, "eps", "zero or positive", group["eps"], "1e-8 is usual")
    require(
        group["ceiling"] is None or group["ceiling"] > 0, "ceiling", "positive or None",
        group["ceiling"], "None derives it from the prior",
    )


def check_annealing(group: Group) -> None:
    """Of Santa."""
    require(
        group["anneal"] >= 0, "anneal", "zero or positive", group["anneal"],
        "0 keeps the temperature",
    )
    require(
        group["explore"] is None or group["explore"] >= 0, "explore", "zero, positive or None",
        group["explore"], "pass the number of exploring steps",
    )
