"""The socket that every sampler plugs into: a torch optimiser that knows N, prior, temperature and its noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from .clocks import Clock
from .fused import find_kernel
from .lazy_rows import LazyRows
from .noise import START_STREAM, STEP_STREAM, Counter, normal


class Sampler(torch.optim.Optimizer, ABC):
    """Draws from p(θ | data)^(1/T) instead of maximising it. Abstract; `SGLD`, `PSGLD`, ... are final.

    Hand it the gradient of the **mean** negative log-likelihood, as to any optimiser. `num_data` (N) is the number
    of terms which that mean stands for in the whole training set: tokens, sentences, rows. `prior_var` (σ²) is the
    variance of a Gaussian prior around zero (or see `set_prior_mean`), None a flat prior. `temperature` (T) is 1 for
    the Bayes posterior and 0 for the optimiser twin. Every setting may differ between parameter groups.

    Noise is a function of (seed, parameter, element, step) and of nothing else. Without a `seed` each sampler draws one
    from torch's generator, so that `torch.manual_seed` repeats a program and no two samplers in it share their noise.

    A parameter whose `.grad` is None is left alone, without noise, as torch optimisers do. A parameter (or an
    embedding row) whose gradient is zero diffuses under its prior like any other. With `nn.Embedding(sparse=True)`
    the rows outside the batch do so later, when they are read (see `lazy_rows.py` and `attach`).

    `fused` None runs the compiled kernel where it can (see `fused.py`), False the plain torch function, with the
    same bits; True insists on the kernel.

    A final class names its two `functions` (plain torch, compiled) and the state tensors they take (`memory`); `start`
    makes that state and `settings` turns a group into keyword arguments of both.
    """

    memory: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None, temperature: float,
        seed: int | None, maximize: bool, fused: bool | None, **settings: Any,
    ) -> None:
        if seed is None:
            seed = int(torch.randint(2**62, ()))
        common = {
            "lr": lr, "num_data": num_data, "prior_var": prior_var, "temperature": temperature, "seed": seed,
            "maximize": maximize, "fused": fused,
        }  # fmt: skip
        super().__init__(params, common | settings | {"steps_done": 0})
        self.lazy: dict[Tensor, LazyRows] = {}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As in torch; parameters are numbered in the order they arrive, and the number selects their noise."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        group["first_parameter"] = sum(len(g["params"]) for g in self.param_groups[:-1])
        try:
            check_group(group)
            check_foreign(group, self.defaults)
            self.check_settings(group)
        except Exception:  # whatever is wrong with it, a refused group must not stay; raised again below
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; evaluates a closure first and returns its loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            means = self.prior_means(group)
            for theta, mean in means:  # the update then sees a prior around zero
                theta.sub_(mean)
            try:
                self.step_group(group)
            finally:
                for theta, mean in means:
                    theta.add_(mean)
            group["steps_done"] += 1
        return loss

    def set_prior_mean(self, parameter: Tensor, mean: Tensor) -> None:
        """Centre the Gaussian prior of a parameter here instead of at zero; kept in the state, so it resumes."""
        require(mean.shape == parameter.shape, "mean", f"of shape {tuple(parameter.shape)}", tuple(mean.shape),
                "pass one number for each weight")
        self.state[parameter]["prior_mean"] = mean.detach().to(parameter).clone()

    def prior_means(self, group: dict[str, Any]) -> list[tuple[Tensor, Tensor]]:
        """The parameters of a group that this step moves under a prior with a mean of its own, and that mean."""
        if group["prior_var"] is None:
            return []
        made = []
        for theta in group["params"]:
            if theta.grad is not None and theta in self.state and "prior_mean" in self.state[theta]:
                require(not theta.grad.is_sparse, "the gradient", "dense under a prior with a mean", "a sparse one",
                        "build the embedding with sparse=False")
                made.append((theta, self.state[theta]["prior_mean"]))
        return made

    def step_group(self, group: dict[str, Any]) -> None:
        """Plain updates and sparse rows one by one; what compiled kernels can do in one launch for each dtype."""
        settings = self.settings(group)
        noisy = settings["temperature"] > 0
        plain, name = self.functions()
        batches: dict[tuple[Any, ...], list[tuple[int, tuple[Tensor, ...]]]] = {}
        for number, theta in enumerate(group["params"], group["first_parameter"]):
            if theta.grad is None:
                continue
            grad = -theta.grad if group["maximize"] else theta.grad
            if grad.is_sparse:
                self.update_rows(theta, grad, group, number)
                continue
            if theta in self.lazy:  # a dense gradient after sparse ones
                self.lazy.pop(theta).catch_up()
            memory = self.remember(theta, group, number)
            if kernel := find_kernel(name, (theta, *memory), group["fused"]):
                tensors = (theta, grad.to(theta.dtype).contiguous(), *memory)
                batches.setdefault((kernel, theta.dtype), []).append((number, tensors))
            else:
                noise = self.draw(theta, group, number, STEP_STREAM) if noisy else None
                plain(theta, grad, noise, *memory, **settings)
        for (kernel, _), jobs in batches.items():
            kernel(jobs, (group["seed"], group["steps_done"], STEP_STREAM) if noisy else None, **settings)
            torch.autograd.graph.increment_version([tensors[0] for _, tensors in jobs])  # written behind torch's back

    def update_rows(self, theta: Tensor, grad: Tensor, group: dict[str, Any], number: int) -> None:
        """The same for a sparse gradient: only its rows move now."""
        memory = self.remember(theta, group, number)
        if theta not in self.lazy:
            self.lazy[theta] = LazyRows(theta, memory, self.clock(theta.device), self.counter, group, number)
        self.lazy[theta].step(grad, self.functions(), self.settings(group))

    @abstractmethod
    def functions(self) -> tuple[Callable[..., None], str]:
        """The plain update and the name of its compiled form in `kernels.py`."""

    @abstractmethod
    def settings(self, group: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of both functions."""

    def start(self, theta: Tensor, group: dict[str, Any], number: int) -> dict[str, Tensor]:
        """State of a parameter before its first step, one tensor for each name in `memory`."""
        return {}

    def clock(self, device: torch.device) -> Clock:
        """What rows outside the batch go through, for samplers that know it in closed form."""
        raise ValueError(
            f"{type(self).__name__} expects dense gradients, got a sparse one; "
            "build the embedding with sparse=False, or use SGLD or PSGLD"
        )

    def check_settings(self, group: dict[str, Any]) -> None:
        """Raise ValueError when a setting of this sampler is impossible."""

    def remember(self, theta: Tensor, group: dict[str, Any], number: int) -> list[Tensor]:
        """The state of a parameter, in the order of the functions' arguments."""
        if self.memory and self.memory[0] not in self.state[theta]:
            self.state[theta].update(self.start(theta, group, number))
        return [self.state[theta][name] for name in self.memory]

    @torch.no_grad()
    def catch_up(self, parameter: Tensor, rows: Tensor) -> None:
        """Bring these rows (any shape, repeats allowed) of an embedding to date; call it before reading them."""
        if parameter in self.lazy:
            self.lazy[parameter].catch_up(rows)

    @torch.no_grad()
    def catch_up_all(self) -> None:
        """Bring every row of every embedding to date: before storing a sample, validating, saving."""
        while self.lazy:
            self.lazy.popitem()[1].catch_up()

    def attach(self, embedding: torch.nn.Embedding) -> RemovableHandle:
        """From now on, before each forward pass, catch up the rows that the embedding is about to read."""
        require(embedding.sparse, "embedding", "built with sparse=True", "a dense one", "dense gradients need no hook")

        def read(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            weight = module.weight
            if isinstance(weight, Tensor):
                self.catch_up(weight, args[0] if args else kwargs["input"])

        return embedding.register_forward_pre_hook(read, with_kwargs=True)

    def state_dict(self) -> dict[str, Any]:
        """As in torch, with every embedding row brought to date first, so that no debts need saving."""
        self.catch_up_all()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As in torch: with the seed and the step, so that what was saved goes on with the same bits.

        Several chains from one state need a seed each: set `group["seed"]` in every one of `param_groups` afterwards.
        """
        there = {name for group in state_dict["param_groups"] for name in group}
        own = self.defaults.keys()
        for what, names in (("without", own - there), ("with", (OF_SOME & there) - own)):
            require(not names, "state_dict", f"of a {type(self).__name__}", f"one {what} {', '.join(sorted(names))}",
                    "load what the same kind of sampler saved; weights alone need no state of their optimiser")
        super().load_state_dict(state_dict)

    def __getstate__(self) -> dict[str, Any]:
        self.catch_up_all()
        return super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.lazy = {}

    def first_momentum(self, theta: Tensor, group: dict[str, Any], number: int) -> Tensor:
        """m ~ N(0, lr·T/N): the momentum of a particle at temperature T, zero for the optimiser twin."""
        if group["temperature"] == 0:
            return torch.zeros_like(theta, memory_format=torch.preserve_format)
        scale = math.sqrt(group["lr"] * group["temperature"] / group["num_data"])
        return self.draw(theta, group, number, START_STREAM) * scale

    def draw(self, theta: Tensor, group: dict[str, Any], number: int, stream: int) -> Tensor:
        """Standard normals shaped like θ that depend on nothing but seed, stream, parameter, element and step."""
        counter = self.counter(group, number, stream)
        if fused := find_kernel("normal", (theta,), group["fused"]):
            noise = torch.empty_like(theta)
            fused(noise, counter)
            return noise
        seed, parameter, step, stream = counter
        return normal(
            theta.shape, seed=seed, parameter=parameter, step=step, stream=stream, device=theta.device,
            dtype=theta.dtype,
        )

    @staticmethod
    def counter(group: dict[str, Any], number: int, stream: int = STEP_STREAM) -> Counter:
        return group["seed"], number, group["steps_done"], stream


def prior_pull(group: dict[str, Any]) -> float:
    """1/(Nσ²): how strongly the prior pulls a weight to zero in units of the mean loss; 0 under a flat prior."""
    return 0.0 if group["prior_var"] is None else 1.0 / (group["num_data"] * group["prior_var"])


def common_settings(group: dict[str, Any]) -> dict[str, Any]:
    """The arguments that all updates share."""
    return {
        "lr": group["lr"], "num_data": group["num_data"], "prior_pull": prior_pull(group),
        "temperature": group["temperature"],
    }  # fmt: skip


def check_group(group: dict[str, Any]) -> None:
    """The settings that all samplers share, refused with what was expected, what came and what to do."""
    for name in ("num_data", "lr", "temperature", "prior_var"):
        value = group[name]
        number = isinstance(value, Real | Tensor) or (name == "prior_var" and value is None)
        require(number, name, "a number", repr(value), "pass it as int or float")
    require(0 < group["num_data"] < math.inf, "num_data", "positive and finite", group["num_data"],
            "pass the number of training terms")
    require(0 <= group["lr"] < math.inf, "lr", "finite, zero or positive", group["lr"],
            "pass a learning rate such as 1e-3")
    require(
        0 <= group["temperature"] < math.inf, "temperature", "finite, zero or positive", group["temperature"],
        "pass 1 for the posterior or 0 for the optimiser twin",
    )
    require(
        group["prior_var"] is None or group["prior_var"] > 0, "prior_var", "positive or None", group["prior_var"],
        "pass None for a flat prior",
    )
    require(isinstance(group["seed"], Integral) and 0 <= int(group["seed"]) < 2**64, "seed", "in [0, 2⁶⁴)",
            group["seed"], "pass a non-negative integer")
    for parameter in group["params"]:
        require(
            parameter.dtype in (torch.float32, torch.float64), "parameters", "float32 or float64", parameter.dtype,
            "convert the model with .float()",
        )


def check_foreign(group: dict[str, Any], own: dict[str, Any]) -> None:
    """Settings of torch's optimisers that this sampler has not, refused where they would have done something."""
    for name in FOREIGN - own.keys():
        require(
            not group.get(name), name, "left out or 0", group.get(name),
            "a prior decays weights here: prior_var = 1/(N·weight_decay)" if name == "weight_decay" else
            f"the settings of this sampler are {', '.join(own)}",
        )
    for name in group.keys() - own.keys() - FOREIGN:  # libraries and schedulers add keys of their own
        meant = get_close_matches(name, own, 1, cutoff=0.8)
        require(not meant, name, "a setting of this sampler", group[name], f"did you mean {', '.join(meant)}?")


OF_SOME = {"preconditioner", "beta", "eps", "eps_inside", "ceiling", "friction", "thermostat_rate", "anneal", "explore"}
"""Settings that not all samplers have, by which the state of one is told from that of another."""
FOREIGN = {"weight_decay", "momentum", "dampening", "nesterov", "alpha", "centered", "betas", "amsgrad", "lr_decay"}


def require(holds: bool, name: str, expected: str, got: object, remedy: str) -> None:
    """Raise ValueError 'name must be expected, got …; remedy' unless it holds. NaN never holds."""
    if not holds:
        raise ValueError(f"{name} must be {expected}, got {got}; {remedy}")
