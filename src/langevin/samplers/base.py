"""The socket that every sampler plugs into: a torch optimiser that knows N, the prior, the temperature and its noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .noise import START_STREAM, STEP_STREAM, normal


class Sampler(torch.optim.Optimizer, ABC):
    """Draws from p(θ | data)^(1/T) instead of maximising it. Abstract; `SGLD`, `PSGLD`, ... are final.

    Hand it the gradient of the **mean** negative log-likelihood, as to any optimiser. `num_data` (N) is the number
    of terms which that mean stands for in the whole training set: tokens, sentences, rows. `prior_var` (σ²) is the
    variance of a Gaussian prior around zero, None a flat prior. `temperature` (T) is 1 for the Bayes posterior and
    0 for the optimiser twin. Every setting may differ between parameter groups.

    A parameter whose `.grad` is None is left alone, without noise, as torch optimisers do. A parameter (or an
    embedding row) whose gradient is zero diffuses under its prior like any other.
    """

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None, temperature: float, seed: int,
        maximize: bool, **settings: Any,
    ) -> None:
        common = dict(
            lr=lr, num_data=num_data, prior_var=prior_var, temperature=temperature, seed=seed, maximize=maximize
        )
        super().__init__(params, common | settings | {"steps_done": 0})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As in torch; parameters are numbered in the order they arrive, and the number selects their noise."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        group["first_parameter"] = sum(len(g["params"]) for g in self.param_groups[:-1])
        try:
            check_group(group)
            self.check_settings(group)
        except ValueError:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]  # torch overloads it
        """One update of every parameter that has a gradient; with a closure, evaluates it first and returns its loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for offset, parameter in enumerate(group["params"]):
                if parameter.grad is None:
                    continue
                if parameter.grad.is_sparse:
                    raise ValueError(
                        f"{type(self).__name__} expects dense gradients, got a sparse one; "
                        "build the embedding with sparse=False"
                    )
                grad = -parameter.grad if group["maximize"] else parameter.grad
                self.update(parameter, grad, group, group["first_parameter"] + offset)
            group["steps_done"] += 1
        return loss

    @abstractmethod
    def update(self, theta: Tensor, grad: Tensor, group: dict[str, Any], number: int) -> None:
        """Move one parameter by one step, in place."""

    def check_settings(self, group: dict[str, Any]) -> None:
        """Raise ValueError when a setting of this sampler is impossible."""

    def noise(self, theta: Tensor, group: dict[str, Any], number: int) -> Tensor | None:
        """ξ for this parameter at this step, or None at temperature 0, where nothing needs it."""
        return self.draw(theta, group, number, STEP_STREAM) if group["temperature"] > 0 else None

    def first_momentum(self, theta: Tensor, group: dict[str, Any], number: int) -> Tensor:
        """m ~ N(0, lr·T/N): the momentum of a particle at temperature T, zero for the optimiser twin."""
        if group["temperature"] == 0:
            return torch.zeros_like(theta, memory_format=torch.preserve_format)
        scale = math.sqrt(group["lr"] * group["temperature"] / group["num_data"])
        return self.draw(theta, group, number, START_STREAM) * scale

    def draw(self, theta: Tensor, group: dict[str, Any], number: int, stream: int) -> Tensor:
        """Standard normals shaped like θ that depend on nothing but seed, stream, parameter, element and step."""
        return normal(
            theta.shape, seed=group["seed"], parameter=number, step=group["steps_done"], stream=stream,
            device=theta.device, dtype=theta.dtype,
        )


def prior_pull(group: dict[str, Any]) -> float:
    """1/(Nσ²): how strongly the prior pulls a weight to zero in units of the mean loss; 0 under a flat prior."""
    return 0.0 if group["prior_var"] is None else 1.0 / (group["num_data"] * group["prior_var"])


def check_group(group: dict[str, Any]) -> None:
    """The settings that all samplers share, refused with what was expected, what came and what to do."""
    require(group["num_data"] > 0, "num_data", "positive", group["num_data"], "pass the number of training terms")
    require(group["lr"] >= 0, "lr", "zero or positive", group["lr"], "pass a learning rate such as 1e-3")
    require(
        group["temperature"] >= 0, "temperature", "zero or positive", group["temperature"],
        "pass 1 for the posterior or 0 for the optimiser twin",
    )
    require(
        group["prior_var"] is None or group["prior_var"] > 0, "prior_var", "positive or None", group["prior_var"],
        "pass None for a flat prior",
    )
    require(0 <= group["seed"] < 2**64, "seed", "in [0, 2⁶⁴)", group["seed"], "pass a non-negative integer")
    for parameter in group["params"]:
        require(
            parameter.dtype in (torch.float32, torch.float64), "parameters", "float32 or float64", parameter.dtype,
            "convert the model with .float()",
        )


def require(holds: bool, name: str, expected: str, got: object, remedy: str) -> None:
    """Raise ValueError 'name must be expected, got …; remedy' unless it holds. NaN never holds."""
    if not holds:
        raise ValueError(f"{name} must be {expected}, got {got}; {remedy}")
