"""The tables that every task has: model, sampler, run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ..samplers import SAMPLERS
from .base import Table, nearest

OPTIMISERS: dict[str, dict[str, Any]] = {
    "sgd": {"name": "sgld"},
    "rmsprop": {"name": "psgld"},
    "adagrad": {"name": "psgld", "preconditioner": "adagrad", "eps": 1e-10},
    "momentum": {"name": "sghmc"},
}
"""The optimiser twins: a sampler at temperature 0 with a flat prior."""

LONGEST = 1e6
"""Epochs of a run: with more, its steps are not to be counted any more, let alone made."""
MOST_THREADS = 1024
"""The thread pool of torch breaks down with its process where it cannot start them all."""
LAST_SEED = 2**62
"""Seeds of chains and folds are counted on from a recipe's, and have to fit into 63 bits."""
NOT_OF_PLATEAU = ("burn_in", "sample_every", "burn_in_temperature", "decay_after", "decay_every", "decay_factor",
                  "cycle", "cycle_floor", "cycle_explore", "patience")
"""Keys that other schedules have."""
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


class Model(Table):
    cell: Literal["lstm", "gru", "rnn"] = Field("lstm", description="lstm, gru or rnn")
    hidden: int = Field(128, ge=1, le=10**6, description="units of a layer")
    layers: int = Field(2, ge=1, le=1000, description="recurrent layers")
    embed: int | None = Field(None, ge=1, le=10**6, description="None: as wide as the hidden layers")
    project: int | None = Field(
        None, ge=1, le=10**4, description="of classifiers: width to which frozen vectors or an encoder's states are "
        "brought; None: vectors stand in the embedding"
    )
    characters: int | None = Field(
        None, ge=1, le=10**4, description="of classifiers: numbers for the hashed characters of a word; None: none"
    )
    readout: tuple[Literal["last", "max", "mean", "attention", "input"], ...] = Field(
        ("last",), min_length=1, description="of classifiers: what of the states is read out, side by side"
    )
    bidirectional: bool | None = Field(None, description="None: yes for classifiers; nothing else may be")
    dropout: float = Field(0.0, ge=0, lt=1, description="share dropped in training")
    dropout_kind: Literal["naive", "gal", "gaussian"] = Field(
        "naive", description="naive: new masks at each step; gal: one for a sequence; gaussian: noise that multiplies"
    )
    image_as: Literal["word", "state"] = Field("word", description="of captioners: where the picture goes in")
    tied: bool = Field(False, description="one matrix for embedding and output")
    init: Literal["fan", "uniform", "authors"] = Field(
        "fan", description="of the first weights: by fan-in, uniform, or as the authors did"
    )
    init_scale: float = Field(0.05, gt=0, description="for 'uniform' and 'authors'")
    forget_bias: float = Field(1.0, description="of the LSTM, at first")

    def recurrent_weights(self) -> int:
        """How many there are at least, in one direction: [gates·hidden, inputs + hidden] a
        layer."""
        inputs = [self.embed or self.hidden, *[self.hidden] * (self.layers - 1)]
        return GATES[self.cell] * self.hidden * sum(width + self.hidden for width in inputs)

    @model_validator(mode="after")
    def _ties(self) -> Model:
        if self.tied and self.embed not in (None, self.hidden):
            raise ValueError(f"tied embeddings need embed = hidden, got {self.embed} and {self.hidden}")
        return self


class SamplerSettings(Table):
    """Settings of the sampler; None means its own default (and, for prior_var, a flat prior)."""

    name: str = Field("psgld", description="sgld, psgld, sghmc, sgnht, santa; or sgd, rmsprop, adagrad, momentum")
    lr: float = Field(2e-3, gt=0, description="learning rate: step size of the mean loss")
    temperature: Annotated[float, Field(ge=0)] | Annotated[str, Field(pattern=r"^[0-9.]+/N$")] | None = Field(
        None, description="a number, or one over N like '2/N'; None: 1, of optimisers 0"
    )
    prior_var: float | None = Field(None, gt=0, description="variance of the Gaussian prior; None: flat")
    preconditioner: Literal["rmsprop", "adagrad"] | None = Field(
        None, description="of psgld and santa: rmsprop or adagrad"
    )
    beta: float | None = Field(None, ge=0, lt=1, description="memory of the squared gradients")
    eps: float | None = Field(None, ge=0, description="added to their root")
    eps_inside: bool | None = Field(None, description="under the root instead")
    ceiling: float | None = Field(
        None, gt=0, description="of the preconditioner; None: N times the prior's deviation, flat: N, optimisers: none"
    )
    friction: float | None = Field(None, gt=0, le=1, description="of momentum, per step")
    thermostat_rate: float | None = Field(None, ge=0, description="how fast the thermostat learns")
    anneal: float | None = Field(None, ge=0, description="of santa: T falls as (step + 1)^-anneal")
    explore: int | None = Field(None, ge=0, description="of santa: steps before it only optimises")

    @model_validator(mode="after")
    def _known(self) -> SamplerSettings:
        names = [*SAMPLERS, *OPTIMISERS]
        if self.name not in names:
            hint = nearest(self.name, names)
            raise ValueError(f"sampler name must be one of {', '.join(names)}, got {self.name!r}{hint}")
        if self.name in OPTIMISERS and (self.temperature or self.prior_var is not None):
            sampler = self.resolved(1)[0]
            raise ValueError(f"{self.name} is an optimiser: temperature 0, no prior; use {sampler!r} to sample")
        cls, settings = self.resolved(1)
        allowed = SAMPLERS[cls].setting_names()
        foreign = sorted(set(settings) - allowed)
        if foreign:
            raise ValueError(f"{self.name} has no setting {foreign[0]!r}; remove it or choose another sampler")
        return self

    def resolved(self, num_data: float) -> tuple[str, dict[str, Any]]:
        """Name of the sampler and the settings to build it with; an optimiser becomes its sampler
        at T = 0."""
        settings = {k: v for k, v in self.model_dump(exclude={"name"}).items() if v is not None}
        if isinstance(self.temperature, str):
            settings["temperature"] = float(self.temperature.removesuffix("/N")) / num_data
        twin = dict(OPTIMISERS.get(self.name, {"name": self.name}))
        base = {"temperature": 0.0 if self.name in OPTIMISERS else 1.0}
        return twin.pop("name"), base | twin | settings


def settings_without_use(name: object) -> set[str]:
    """Keys of the sampler table that a sampler or an optimiser of this name refuses."""
    twin = OPTIMISERS.get(str(name), {"name": str(name)})["name"]
    if twin not in SAMPLERS:
        return set()
    useless = SamplerSettings.model_fields.keys() - SAMPLERS[twin].setting_names() - {"name"}
    return useless | ({"temperature", "prior_var"} if str(name) in OPTIMISERS else set())


class Run(Table):
    """How long, when to sample, and every schedule. Times are in epochs."""

    epochs: float = Field(20, gt=0, le=LONGEST, description="of the whole run")
    burn_in: float = Field(4, ge=0, description="epochs before the first sample may be kept")
    sample_every: float = Field(0.5, gt=0, description="epochs between samples")
    burn_in_temperature: float | None = Field(None, ge=0, description="None: the sampler's; 0: optimise first")
    lr_schedule: Literal["constant", "step", "cyclical", "plateau"] = Field(
        "constant", description="constant, step, cyclical; or plateau: full for half of the epochs, then down to 0.3; "
        "samples from there on, and no burn_in to set"
    )
    hold: float = Field(0.5, ge=0.01, le=0.99, description="plateau: share of the run at the full rate")
    floor: float = Field(0.3, ge=0, le=1, description="plateau: rate at the end, of the full one")
    sample: Literal["last", "mean"] = Field(
        "last", description="what is kept: the last weights, or their running mean over about 100 steps"
    )
    by_size: bool = Field(
        False, description="keys that are left out follow from the size of a text, epochs from the number of "
        "sentences or captions; 'langevin show' tells them"
    )
    minutes: float | None = Field(
        None, gt=0, le=LONGEST, description="of training at most; the run keeps the epochs that fit into them"
    )
    decay_after: float = Field(10, ge=0, description="step: epochs at the full rate")
    decay_every: float = Field(1, gt=0, description="step: epochs between falls")
    decay_factor: float = Field(0.5, gt=0, le=1, description="step: of each fall")
    cycle: float = Field(4, gt=0, description="length of a cosine cycle; cycles start after burn-in")
    cycle_floor: float = Field(0.0, ge=0, le=1, description="rate at the end of a cycle, of that at its beginning")
    cycle_explore: float = Field(0.0, ge=0, lt=1, description="first part of each cycle: no noise, no samples")
    clip: Literal["none", "norm", "always"] = Field(
        "none", description="none, norm: longer gradients are shortened, always: all get this norm"
    )
    clip_norm: float = Field(5.0, gt=0, description="of the gradient of the mean loss")
    patience: int | None = Field(None, ge=1, description="stop after so many samples without a better average")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="of the products in training; weights, noise and every evaluation stay float32"
    )
    seed: int = Field(0, ge=0, le=LAST_SEED, description="of weights, batches, masks and noise")
    accumulate: int = Field(
        1, ge=1, description="pieces of a batch, one after the other, for less memory; same result"
    )
    device: str = Field("cpu", description="cpu, or any other that torch knows")
    threads: int | None = Field(
        None, ge=1, le=MOST_THREADS, description="None: one for each core"
    )
    checkpoint_minutes: float = Field(1.0, ge=0, description="between checkpoints")

    @model_validator(mode="after")
    def _collects(self) -> Run:
        if self.lr_schedule == "plateau":
            self._refuse_foreign_to_plateau()
            return self
        if self.burn_in >= self.epochs:
            raise ValueError(f"burn_in must be shorter than the run of {self.epochs:g} epochs, got {self.burn_in:g}")
        if self.burn_in + self.sample_every > self.epochs:
            raise ValueError(
                f"no sample would be collected: the first is due {self.sample_every:g} epochs after burn-in "
                f"({self.burn_in:g}), the run ends at {self.epochs:g}; lower sample_every or burn_in"
            )
        return self

    def _refuse_foreign_to_plateau(self) -> None:
        for key in NOT_OF_PLATEAU:
            value = getattr(self, key)
            if value != type(self).model_fields[key].default:
                raise ValueError(f"{key} follows from epochs where lr_schedule is 'plateau', got {value!r}; leave it "
                                 f"out, or set lr_schedule=constant")

    @property
    def first_sample(self) -> float:
        """Epochs before the first sample."""
        return self.epochs * self.hold if self.lr_schedule == "plateau" else self.burn_in

    def describe(self) -> str:
        collected = f"burn-in {self.burn_in:g}, a sample every {self.sample_every:g}"
        if self.lr_schedule == "plateau":
            start = "half-way" if self.hold == 0.5 else f"{self.hold:.0%}"
            collected = f"samples from {start} on"
        means = ", samples are running means" if self.sample == "mean" else ""
        return (f"{self.epochs:g} epochs, {collected}, lr {self.lr_schedule}{means}, clip {self.clip}, "
                f"{self.precision}")
