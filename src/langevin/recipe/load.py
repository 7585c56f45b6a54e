"""A recipe: everything that determines a run, validated and frozen before the first batch."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from ..errors import LangevinError
from ..files import read_bytes
from .base import Table, nearest
from .captions import CaptionData
from .sentences import SentenceData
from .tables import Model, Run, SamplerSettings, settings_without_use
from .text import TextData

TaskName = Literal["language-model", "classify", "caption"]
Data = TextData | SentenceData | CaptionData
DATA_TABLES: dict[str, type[TextData] | type[SentenceData] | type[CaptionData]] = {
    "language-model": TextData, "classify": SentenceData, "caption": CaptionData,
}

MACHINE_KEYS = ("accumulate", "device", "threads", "checkpoint_minutes")
"""Settings of the run table that say where it runs, not what it computes."""
GONE: dict[str, dict[str, Any]] = {
    "model": {"dropconnect": 0.0}, "run": {"temperature_ramp": 0.0, "poly_offset": 1.0, "poly_power": 0.55},
}
"""Keys that recipes once had, and their defaults: runs wrote their whole recipe, so those of that
time name them."""


class Recipe(Table):
    """Four tables: data, model, sampler, run. Unknown keys and impossible numbers are refused."""

    task: TaskName = "language-model"
    title: str = ""
    data: Data = Field(default_factory=TextData)
    model: Model = Model()
    sampler: SamplerSettings = SamplerSettings()
    run: Run = Run()

    @model_validator(mode="before")
    @classmethod
    def _data_of_the_task(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Keys that are gone are forgotten; the task says which keys the data table may have."""
        values = without_gone(values)
        cls_of_data = DATA_TABLES.get(str(values.get("task", "language-model")))
        if cls_of_data is None or not isinstance(values.get("data", {}), dict):
            return values
        return values | {"data": cls_of_data.model_validate(values.get("data", {}))}

    @model_validator(mode="after")
    def _only_classifiers_read_out(self) -> Recipe:
        for key in ("project", "characters", "readout"):
            value = getattr(self.model, key)
            if self.task != "classify" and value != Model.model_fields[key].default:
                raise ValueError(f"model.{key} is for classifiers, got {value!r} in a recipe for {self.task}; "
                                 f"leave it out")
        return self

    def to_toml(self) -> str:
        """The whole recipe, defaults included; None is left out."""
        values = self.model_dump(mode="json")
        lines = [f"{key} = {toml_value(values[key])}" for key in ("task", "title")]
        for table in TABLES:
            lines += ["", f"[{table}]"]
            lines += [f"{k} = {toml_value(v)}" for k, v in values[table].items() if v is not None]
        return "\n".join(lines) + "\n"

    def what_is_computed(self) -> dict[str, Any]:
        """The recipe without the settings that only say where it runs."""
        return self.model_dump(mode="json", exclude={"run": set(MACHINE_KEYS)})


def without_gone(values: dict[str, Any]) -> dict[str, Any]:
    """Recipe tables without the keys that did nothing at their defaults; any other value asks for
    what is not there."""
    for table, keys in GONE.items():
        content = values.get(table)
        if not isinstance(content, dict):
            continue
        for key in keys.keys() & content.keys():
            if content[key] != keys[key]:
                raise ValueError(f"{table}.{key} is gone: expected {keys[key]:g}, which does nothing, or no such key, "
                                 f"got {content[key]!r}; leave it out")
        values = values | {table: {key: value for key, value in content.items() if key not in keys}}
    return values


def toml_value(value: Any) -> str:
    """As JSON writes it, but for the signs that TOML wants otherwise: no surrogate pairs, and DEL
    escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


TABLES: dict[str, tuple[type[Table], ...]] = {
    "data": tuple(DATA_TABLES.values()), "model": (Model,), "sampler": (SamplerSettings,), "run": (Run,),
}


def shipped() -> dict[str, Path]:
    """The recipes that come with the project, by name."""
    package = Path(__file__).resolve().parents[1]
    folder = package / "recipes" if (package / "recipes").is_dir() else package.parents[1] / "recipes"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_recipe(name_or_path: str | Path | None, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe (a shipped name or a TOML file; None: the defaults) and apply `key=value`
    overrides."""
    values: dict[str, Any] = {}
    if name_or_path is not None:
        path = shipped().get(str(name_or_path), Path(name_or_path))
        if not path.is_file():
            hint = nearest(str(name_or_path), shipped())
            raise LangevinError(f"no recipe named {str(name_or_path)!r} and no such file{hint}; see 'langevin recipes'")
        values = tables_of(read_bytes(path), path)
    given = [apply_override(values, override) for override in overrides]
    if ("sampler", "name") in given:
        let_settings_follow(values, {name for table, name in given if table == "sampler"})
    return validate(values)


def let_settings_follow(values: dict[str, Any], given: set[str]) -> None:
    """Where another sampler is named, settings of the one before that it cannot have go."""
    sampler = values["sampler"]
    useless = settings_without_use(sampler.get("name"))
    for name in (sampler.keys() & useless) - given:
        del sampler[name]


def tables_of_shipped(name: str) -> dict[str, Any]:
    """The tables of a shipped recipe, as they stand in its file."""
    path = shipped()[name]
    return tables_of(read_bytes(path), path)


def parse_recipe(raw: bytes, source: Path) -> Recipe:
    """A recipe from what was read of a file."""
    return validate(tables_of(raw, source))


def tables_of(raw: bytes, source: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = "" if source.suffix == ".toml" else f"; to train on a text, pass it by --text {source}"
        raise LangevinError(f"{source} is not valid TOML: {error}{text}") from None


def apply_override(values: dict[str, Any], override: str) -> tuple[str | None, str]:
    """`epochs=4`, `sampler.lr=0.1`, `cell=gru`: values as in TOML, bare words as strings, 'none'
    removes a key.

    Returns the table and the key.
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise LangevinError(f"expected key=value, got {override!r}")
    table, name = locate(key.strip())
    target = values.setdefault(table, {}) if table else values
    if text.strip().lower() == "none":
        target.pop(name, None)
        return table, name
    try:
        target[name] = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        target[name] = text
    return table, name


def locate(key: str) -> tuple[str | None, str]:
    """The table that a key belongs to. Names are unique across tables, so the table may be left
    out."""
    table, dot, name = key.rpartition(".")
    for candidate, classes in TABLES.items():
        if (table in ("", candidate)) and any(name in cls.model_fields for cls in classes):
            return candidate, name
    if not dot and name in ("task", "title"):
        return None, name
    if key in TABLES:
        inside = ", ".join(f"{key}.{name}" for name in sorted({n for cls in TABLES[key] for n in cls.model_fields}))
        raise LangevinError(f"{key!r} is a table of the recipe, expected one of its keys: {inside}")
    if any(table in ("", where) and name in keys for where, keys in GONE.items()):
        raise LangevinError(f"recipe key {key!r} is gone; leave it out")
    raise LangevinError(f"unknown recipe key {key!r}{nearest(name, all_keys())}")


def validate(values: dict[str, Any]) -> Recipe:
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        # each once
        problems = dict.fromkeys(explain_setting(problem) for problem in error.errors())
        raise LangevinError("\n".join(problems)) from None


def explain_setting(problem: Any) -> str:
    """One line for one problem that pydantic found."""
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        if name in all_keys():
            return f"{name!r} is a key of recipes for another task, got it in one that has no use for it; leave it out"
        return f"unknown recipe key {where!r}{nearest(name, all_keys())}"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    # may be of several kinds, and pydantic complains of each
    if problem["loc"][:2] == ("sampler", "temperature"):
        if problem["input"] == "auto":
            return ("temperature = 'auto' is gone, it did no better than a fixed number: set one; 0.1 for characters, "
                    "0.05 for words, 0.01 for sentences of a few thousand, 0 for no noise")
        return (f"sampler.temperature: expected a number of 0 or more, or one over N such as '2/N', got "
                f"{problem['input']!r}")
    return f"{where}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {problem['input']!r}"


def all_keys() -> list[str]:
    """Every key of every table; a key of several tasks' data tables once."""
    return [name for classes in TABLES.values() for name in dict.fromkeys(n for c in classes for n in c.model_fields)]
