"""Several options of a command as one record, so that a command is as short as what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

Command = Callable[..., None]
Added = dict[str, tuple[Any, Any]]
"""Options by name: their annotation, and their default."""


def takes(parameter: str, record: type) -> Callable[[Command], Command]:
    """A command whose `parameter` is a dataclass: its fields become options, in its place."""
    hints = get_type_hints(record, include_extras=True)
    added = {field.name: (hints[field.name], field.default) for field in fields(record)}
    assert all(default is not MISSING for _, default in added.values())

    def expand(function: Command) -> Command:
        return add_options(function, parameter, added, lambda own, others: record(**own))

    return expand


def add_options(
    function: Command, parameter: str, added: Added,
    gather: Callable[[dict[str, Any], dict[str, Any]], Any], *, last: bool = False,
) -> Command:  # fmt: skip
    """A command one of whose parameters becomes several options, in its place or at the end.

    `gather` makes it of what these were given, and all others.
    """
    shape = signature(function, eval_str=True)
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in added.items()
    ]
    parameters = list[Parameter]()
    for own in shape.parameters.values():
        if own.name != parameter:
            parameters.append(own.replace(kind=Parameter.KEYWORD_ONLY))
        elif not last:
            parameters += options
    parameters += options if last else []

    @wraps(function)
    def command(**given: Any) -> None:
        taken = {name: given.pop(name) for name in added}
        function(**{parameter: gather(taken, given)}, **given)

    command.__signature__ = shape.replace(parameters=parameters)  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {own.name: own.annotation for own in parameters}
    return command
