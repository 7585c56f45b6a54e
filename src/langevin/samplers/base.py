"""The socket that every sampler plugs into: a torch optimiser that knows N, prior, temperature and
its noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Required, TypedDict

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from .checks import Group, Settings, check_arguments, check_group, check_names, check_state, require
from .clocks import Clock
from .cpu import launch
from .late_rows import LateRows
from .noise import START_STREAM, STEP_STREAM, Counter, normal


class Common(TypedDict, total=False):
    """The keyword arguments that all samplers share."""

    num_data: Required[float]
    prior_var: float | None
    temperature: float
    seed: int | None
    fused: bool | None


ARGUMENTS = """
    Arguments of every sampler; groups of parameters may differ in all but the first:

    `params`: parameters or groups of them, as for any optimiser of torch.
    `lr`: learning rate, the step size of the mean loss.
    `num_data` (N): the number of terms which that mean stands for in the whole training set:
        tokens, sentences, rows.
    `prior_var` (σ²): variance of a Gaussian prior around zero (or see `set_prior_mean`); None, the
        default, is a flat prior. A weight decay w is the prior 1/(N·w).
    `temperature` (T): 1, the default, for the Bayes posterior, 0 for the optimiser twin.
    `seed`: of the noise; None, the default, draws one from torch's generator.
    `fused`: None, the default, runs the compiled kernel where it can, False the plain torch
        function, with the same bits; True insists on the kernel.

    torch's schedulers that cycle the momentum (`OneCycleLR`, `CyclicLR`) write it to
    `group["momentum"]`, where it stands for friction = 1 − momentum; samplers that have no momentum
    leave it aside.
    """
SHARED = {"lr", "steps_done", *Common.__annotations__}


class Sampler(torch.optim.Optimizer, ABC):
    """Draws from p(θ | data)^(1/T) instead of maximising it. Abstract; `SGLD`, ... are final.

    Hand it the gradient of the **mean** negative log-likelihood, as to any optimiser.

    Noise is a function of (seed, parameter, element, step) and of nothing else. A seed that is
    drawn from torch's generator lets `torch.manual_seed` repeat a program, and no two samplers in
    it share their noise.

    A parameter whose `.grad` is None is left alone, without noise, as torch optimisers do. A
    parameter (or an embedding row) whose gradient is zero diffuses under its prior like any other.
    With `nn.Embedding(sparse=True)` the rows outside the batch do so later, when they are read (see
    `late_rows.py` and `attach`).

    A final class has the plain `update`, the name of its compiled form in `cpu/launch.py`
    (`kernel`) and the state tensors that both take (`memory`); `start` makes that state and
    `settings` turns a group into keyword arguments of both.
    """

    update: ClassVar[Callable[..., None]]
    kernel: ClassVar[str]
    memory: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """`help` of a class does not show what its base class explains."""
        super().__init_subclass__()
        cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}\n{ARGUMENTS}"

    def __init__(
        self, params: Any, lr: float, *, num_data: float, prior_var: float | None = None,
        temperature: float = 1.0, seed: int | None = None, fused: bool | None = None,
        **settings: Any,
    ) -> None:  # fmt: skip
        check_arguments(type(self), settings.keys(), self.setting_names())
        common = {
            "lr": lr, "num_data": num_data, "prior_var": prior_var, "temperature": temperature,
            "seed": int(torch.randint(2**62, ())) if seed is None else seed, "fused": fused,
            "momentum": None,
        }  # fmt: skip
        super().__init__(params, common | settings | {"steps_done": 0})
        self.late: dict[Tensor, LateRows] = {}

    @classmethod
    def setting_names(cls) -> frozenset[str]:
        """Of a parameter group: those that all samplers share, and the keyword arguments of this
        one. torch adds more to `defaults`, so that these do not tell.
        """
        return frozenset(SHARED | (cls.__init__.__kwdefaults__ or {}).keys())

    def add_param_group(self, param_group: Group) -> None:
        """As in torch; the number of a parameter, in order of arrival, selects its noise."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        group["first_parameter"] = sum(len(g["params"]) for g in self.param_groups[:-1])
        try:
            check_group(group)
            check_names(group, self.setting_names())
            self.check_settings(group)
        except Exception:  # whatever is wrong with it, a refused group must not stay; raised again
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; evaluates a closure first and returns
        its loss. What compiled kernels can do is done in one launch for each group and dtype (two,
        where priors have means).
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            settings = self.settings(group)
            noisy = settings["temperature"] > 0
            launches: dict[tuple[torch.dtype, bool], list[launch.Job]] = {}
            for number, theta in enumerate(group["params"], group["first_parameter"]):
                if theta.grad is None:
                    continue
                memory, mean = self.remember(theta, group, number), self.prior_mean(theta, group)
                if theta.grad.is_sparse:
                    self.update_rows(theta, memory, group, number, settings)
                    continue
                if theta in self.late:  # a dense gradient after sparse ones
                    self.late.pop(theta).catch_up()
                held = memory if mean is None else [*memory, mean]
                if launch.fits((theta, *held), group["fused"]):
                    tensors = (theta, theta.grad.to(theta.dtype).contiguous(), *memory)
                    like = theta.dtype, mean is None
                    launches.setdefault(like, []).append((number, tensors, mean))
                else:
                    noise = self.draw(theta, group, number, STEP_STREAM) if noisy else None
                    self.update(theta, theta.grad, noise, *memory, prior_mean=mean, **settings)
            key = (group["seed"], group["steps_done"], STEP_STREAM) if noisy else None
            for jobs in launches.values():
                launch.update(self.kernel, jobs, key, settings)
            group["steps_done"] += 1
        return loss

    @abstractmethod
    def settings(self, group: Group) -> Settings:
        """The keyword arguments of the update, plain and compiled."""

    def start(self, theta: Tensor, group: Group, number: int) -> dict[str, Tensor]:
        """State of a parameter before its first step, one tensor for each name in `memory`."""
        return {}

    def clock(self, device: torch.device) -> Clock:
        """What rows outside the batch go through, for samplers that know it in closed form."""
        raise ValueError(
            f"{type(self).__name__} expects dense gradients, got a sparse one; "
            "build the embedding with sparse=False, or use SGLD or PSGLD"
        )

    def check_settings(self, group: Group) -> None:
        """Raise ValueError when a setting of this sampler is impossible."""

    def remember(self, theta: Tensor, group: Group, number: int) -> list[Tensor]:
        """The state of a parameter, in the order of the update's arguments."""
        if self.memory and self.memory[0] not in self.state[theta]:
            self.state[theta].update(self.start(theta, group, number))
        return [self.state[theta][name] for name in self.memory]

    def set_prior_mean(self, parameter: Tensor, mean: Tensor) -> None:
        """Centre the Gaussian prior of a parameter here instead of at zero; part of the state."""
        require(
            mean.shape == parameter.shape, "mean", f"of shape {tuple(parameter.shape)}",
            tuple(mean.shape), "pass one number for each weight",
        )
        self.state[parameter]["prior_mean"] = mean.detach().to(parameter).clone()

    def prior_mean(self, theta: Tensor, group: Group) -> Tensor | None:
        """The mean of a parameter's prior, if it has one of its own."""
        if group["prior_var"] is None or theta not in self.state:
            return None
        mean: Tensor | None = self.state[theta].get("prior_mean")
        require(
            mean is None or theta.grad is None or not theta.grad.is_sparse, "the gradient",
            "dense under a prior with a mean", "a sparse one",
            "build the embedding with sparse=False",
        )
        return mean

    def update_rows(
        self, theta: Tensor, memory: list[Tensor], group: Group, number: int,
        settings: Settings,
    ) -> None:  # fmt: skip
        """The update for a sparse gradient: only its rows move now."""
        if theta not in self.late:
            clock = self.clock(theta.device)
            self.late[theta] = LateRows(theta, memory, clock, self.counter, group, number)
        grad: Any = theta.grad
        self.late[theta].step(grad, self.update, self.kernel, settings)

    @torch.no_grad()
    def catch_up(self, parameter: Tensor, rows: Tensor) -> None:
        """Bring these rows (any shape, repeats allowed) of an embedding to date; call it before
        reading them.
        """
        if parameter in self.late:
            self.late[parameter].catch_up(rows)

    @torch.no_grad()
    def catch_up_all(self) -> None:
        """Bring every row of every embedding to date: before storing a sample, validating or
        saving.
        """
        while self.late:
            self.late.popitem()[1].catch_up()

    def attach(self, embedding: torch.nn.Embedding) -> RemovableHandle:
        """From now on, before each forward pass, catch up the rows that the embedding is about to
        read.
        """
        require(
            embedding.sparse, "embedding", "built with sparse=True", "a dense one",
            "dense gradients need no hook",
        )

        def read(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            weight = module.weight
            if isinstance(weight, Tensor):
                self.catch_up(weight, args[0] if args else kwargs["input"])

        return embedding.register_forward_pre_hook(read, with_kwargs=True)

    def state_dict(self) -> dict[str, Any]:
        """As in torch, with every embedding row brought to date first: no debts need saving."""
        self.catch_up_all()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As in torch: with the seed and the step, so that what was saved goes on with the same
        bits.

        Several chains from one state need a seed each: set `group["seed"]` in every one of
        `param_groups` afterwards.
        """
        check_state(type(self), state_dict["param_groups"], self.setting_names())
        super().load_state_dict(state_dict)

    def __getstate__(self) -> dict[str, Any]:
        self.catch_up_all()
        return super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.late = {}
        for group in self.param_groups:  # a state may be older than this key
            group.setdefault("momentum", None)

    def first_momentum(self, theta: Tensor, group: Group, number: int) -> Tensor:
        """m ~ N(0, lr·T/N): the momentum of a particle at temperature T, zero for the twin."""
        if group["temperature"] == 0:
            return torch.zeros_like(theta, memory_format=torch.preserve_format)
        scale = math.sqrt(group["lr"] * group["temperature"] / group["num_data"])
        return self.draw(theta, group, number, START_STREAM) * scale

    def draw(self, theta: Tensor, group: Group, number: int, stream: int) -> Tensor:
        """Standard normals shaped like θ that depend on nothing but seed, stream, parameter,
        element and step.
        """
        counter = self.counter(group, number, stream)
        if launch.fits((theta,), group["fused"]):
            noise = torch.empty_like(theta)
            launch.fill_normal(noise, counter)
            return noise
        seed, parameter, step, stream = counter
        return normal(
            theta.shape, seed=seed, parameter=parameter, step=step, stream=stream,
            device=theta.device, dtype=theta.dtype,
        )  # fmt: skip

    @staticmethod
    def counter(group: Group, number: int, stream: int = STEP_STREAM) -> Counter:
        return group["seed"], number, group["steps_done"], stream


def common_settings(group: Group) -> Settings:
    """The arguments that all updates share."""
    return {name: group[name] for name in ("lr", "num_data", "prior_var", "temperature")}


def friction_of(group: Group) -> float:
    """1 − momentum where a scheduler wrote one, the group's own friction everywhere else."""
    momentum = group["momentum"]
    return float(group["friction"] if momentum is None else 1 - momentum)
