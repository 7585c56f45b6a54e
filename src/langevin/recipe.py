"""A recipe: everything that determines a run, validated and frozen before the first batch."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import LangevinError
from .samplers import SAMPLERS

OPTIMISERS: dict[str, dict[str, Any]] = {
    "sgd": {"name": "sgld"},
    "rmsprop": {"name": "psgld"},
    "adagrad": {"name": "psgld", "preconditioner": "adagrad", "eps": 1e-10},
    "momentum": {"name": "sghmc"},
}
"""The optimiser twins: a sampler at temperature 0 with a flat prior."""

MACHINE_KEYS = ("device", "threads", "checkpoint_minutes")
"""Settings of the run table that say where it runs, not what it computes."""


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Data(Table):
    """Which text, how it is cut into tokens, and how tokens become batches."""

    corpus: str = "war_and_peace"
    level: Literal["byte", "char", "word"] = "byte"
    min_count: int = Field(1, ge=1)
    max_vocab: int | None = Field(None, ge=2)
    batching: Literal["successive", "random"] = "successive"
    batch_size: int = Field(32, ge=1)
    window: int = Field(50, ge=1)
    split: Literal["contiguous", "streams"] = "contiguous"
    parts: tuple[float, float, float] = (80, 10, 10)

    @model_validator(mode="after")
    def _parts(self) -> Data:
        if min(self.parts) <= 0:
            raise ValueError(f"parts must be three positive numbers (train, valid, test), got {self.parts}")
        if self.split == "streams" and any(part != int(part) for part in self.parts):
            raise ValueError(f"with split='streams', parts count batches; expected whole numbers, got {self.parts}")
        return self


class Model(Table):
    cell: Literal["lstm", "gru", "rnn"] = "lstm"
    hidden: int = Field(128, ge=1)
    layers: int = Field(2, ge=1)
    embed: int | None = Field(None, ge=1, description="None: as wide as the hidden layers")
    dropout: float = Field(0.0, ge=0, lt=1)
    dropout_kind: Literal["naive", "gal", "gaussian"] = "naive"
    dropconnect: float = Field(0.0, ge=0, lt=1, description="share of recurrent weights dropped in each batch")
    tied: bool = Field(False, description="one matrix for embedding and output")
    init: Literal["fan", "uniform", "authors"] = "fan"
    init_scale: float = Field(0.05, gt=0, description="for 'uniform' and 'authors'")
    forget_bias: float = 1.0

    @model_validator(mode="after")
    def _ties(self) -> Model:
        if self.tied and self.embed not in (None, self.hidden):
            raise ValueError(f"tied embeddings need embed = hidden, got {self.embed} and {self.hidden}")
        return self


class SamplerSettings(Table):
    """Settings of the sampler; None means its own default (and, for prior_var, a flat prior)."""

    name: str = "psgld"
    lr: float = Field(2e-3, gt=0)
    temperature: Annotated[float, Field(ge=0)] | Annotated[str, Field(pattern=r"^[0-9.]+/N$")] | None = None
    """A number, or a number over N such as "2/N", the temperature of the authors' released code."""
    prior_var: float | None = Field(None, gt=0)
    preconditioner: Literal["rmsprop", "adagrad"] | None = None
    beta: float | None = Field(None, ge=0, lt=1)
    eps: float | None = Field(None, ge=0)
    eps_inside: bool | None = None
    ceiling: float | None = Field(None, gt=0)
    friction: float | None = Field(None, gt=0, le=1)
    thermostat_rate: float | None = Field(None, ge=0)
    anneal: float | None = Field(None, ge=0)
    explore: int | None = Field(None, ge=0)

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
        allowed = set(SAMPLERS[cls].__init__.__code__.co_varnames)
        foreign = sorted(set(settings) - allowed)
        if foreign:
            raise ValueError(f"{self.name} has no setting {foreign[0]!r}; remove it or choose another sampler")
        return self

    def resolved(self, num_data: float) -> tuple[str, dict[str, Any]]:
        """Name of the sampler and the settings to build it with; an optimiser becomes its sampler at T = 0."""
        given = {k: v for k, v in self.model_dump(exclude={"name"}).items() if v is not None}
        if isinstance(self.temperature, str):
            given["temperature"] = float(self.temperature.removesuffix("/N")) / num_data
        twin = dict(OPTIMISERS.get(self.name, {"name": self.name}))
        base = {"temperature": 0.0 if self.name in OPTIMISERS else 1.0}
        return twin.pop("name"), base | twin | given


class Run(Table):
    """How long, when to sample, and every schedule. Times are in epochs."""

    epochs: float = Field(20, gt=0)
    burn_in: float = Field(4, ge=0)
    sample_every: float = Field(0.5, gt=0)
    burn_in_temperature: float | None = Field(None, ge=0, description="None: the sampler's; 0: optimise first")
    temperature_ramp: float = Field(0, ge=0, description="epochs after burn-in over which the temperature rises")
    lr_schedule: Literal["constant", "step", "polynomial", "cyclical"] = "constant"
    decay_after: float = Field(10, ge=0)
    decay_every: float = Field(1, gt=0)
    decay_factor: float = Field(0.5, gt=0, le=1)
    poly_offset: float = Field(1, gt=0)
    poly_power: float = Field(0.55, ge=0)
    cycle: float = Field(4, gt=0, description="length of a cosine cycle; cycles start after burn-in")
    cycle_floor: float = Field(0.0, ge=0, le=1)
    cycle_explore: float = Field(0.0, ge=0, lt=1, description="first part of each cycle: no noise, no samples")
    clip: Literal["none", "norm", "always"] = "none"
    clip_norm: float = Field(5.0, gt=0)
    patience: int | None = Field(None, ge=1, description="stop after so many samples without a better average")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="of the products in training; weights, noise and every evaluation stay float32"
    )
    seed: int = Field(0, ge=0)
    device: str = "cpu"
    threads: int | None = Field(None, ge=1)
    checkpoint_minutes: float = Field(1.0, ge=0)

    @model_validator(mode="after")
    def _collects(self) -> Run:
        if self.burn_in >= self.epochs:
            raise ValueError(f"burn_in must be shorter than the run of {self.epochs:g} epochs, got {self.burn_in:g}")
        if self.burn_in + self.sample_every > self.epochs:
            raise ValueError(
                f"no sample would be collected: the first is due {self.sample_every:g} epochs after burn-in "
                f"({self.burn_in:g}), the run ends at {self.epochs:g}; lower sample_every or burn_in"
            )
        return self


class Recipe(Table):
    """Four tables: data, model, sampler, run. Unknown keys and impossible numbers are refused."""

    task: Literal["language-model"] = "language-model"
    title: str = ""
    data: Data = Data()
    model: Model = Model()
    sampler: SamplerSettings = SamplerSettings()
    run: Run = Run()

    def to_toml(self) -> str:
        """The whole recipe, defaults included; None is left out."""
        values = self.model_dump(mode="json")
        lines = [f"{key} = {json.dumps(values[key])}" for key in ("task", "title")]
        for table in TABLES:
            lines += ["", f"[{table}]"]
            lines += [f"{k} = {json.dumps(v)}" for k, v in values[table].items() if v is not None]
        return "\n".join(lines) + "\n"

    def what_is_computed(self) -> dict[str, Any]:
        """The recipe without the settings that only say where it runs."""
        return self.model_dump(mode="json", exclude={"run": set(MACHINE_KEYS)})


TABLES: dict[str, type[Table]] = {"data": Data, "model": Model, "sampler": SamplerSettings, "run": Run}


def shipped() -> dict[str, Path]:
    """The recipes that come with the project, by name."""
    here = Path(__file__).resolve().parent
    folder = here / "recipes" if (here / "recipes").is_dir() else here.parents[1] / "recipes"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_recipe(
    name_or_path: str | Path | None, overrides: Iterable[str] = (), preset: Literal["paper", "authors"] = "paper"
) -> Recipe:
    """Read a recipe (a shipped name or a TOML file; None: the defaults), apply a preset, then `key=value` overrides."""
    values: dict[str, Any] = {}
    if name_or_path is not None:
        path = shipped().get(str(name_or_path), Path(name_or_path))
        if not path.is_file():
            hint = nearest(str(name_or_path), shipped())
            raise LangevinError(f"no recipe named {str(name_or_path)!r} and no such file{hint}; see 'langevin recipes'")
        try:
            values = tomllib.loads(path.read_text())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise LangevinError(f"{path} is not valid TOML: {error}") from None
    settings = authors_settings(validate(values)) if preset == "authors" else []
    for override in [*settings, *overrides]:
        apply_override(values, override)
    return validate(values)


def authors_settings(recipe: Recipe) -> list[str]:
    """What the authors' released code did where it differs from the printed paper, as overrides of a recipe."""
    if recipe.sampler.name == "sgld":  # Penn Treebank: correct noise with random batches only, and no prior
        temperature = "1" if recipe.data.batching == "random" else "1/N"
        return [f"temperature={temperature}", "prior_var=none", "clip=always", "clip_norm=5"]
    noisy = ["temperature=2/N"] if recipe.sampler.name == "psgld" else []
    trained = ["clip=always", "clip_norm=5", "init=authors", "init_scale=0.05", "forget_bias=3"]
    return [*noisy, "beta=0.9", "eps=1e-6", "eps_inside=true", *trained]


def apply_override(values: dict[str, Any], override: str) -> None:
    """`epochs=4`, `sampler.lr=0.1`, `cell=gru`: values as in TOML, bare words as strings, 'none' removes a key."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise LangevinError(f"expected key=value, got {override!r}")
    table, name = locate(key.strip())
    target = values.setdefault(table, {}) if table else values
    if text.strip().lower() == "none":
        target.pop(name, None)
        return
    try:
        target[name] = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        target[name] = text


def locate(key: str) -> tuple[str | None, str]:
    """The table that a key belongs to. Names are unique across tables, so the table may be left out."""
    table, dot, name = key.rpartition(".")
    for candidate, cls in TABLES.items():
        if (table in ("", candidate)) and name in cls.model_fields:
            return candidate, name
    if not dot and name in ("task", "title"):
        return None, name
    raise LangevinError(f"unknown recipe key {key!r}{nearest(name, all_keys())}")


def validate(values: dict[str, Any]) -> Recipe:
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        problems = "\n".join(explain(problem) for problem in error.errors())
        raise LangevinError(problems) from None


def explain(problem: Any) -> str:
    """One line for one problem that pydantic found."""
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown recipe key {where!r}{nearest(str(problem['loc'][-1]), all_keys())}"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    return f"{where}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {problem['input']!r}"


def all_keys() -> list[str]:
    return [name for table in TABLES.values() for name in table.model_fields]


def nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
