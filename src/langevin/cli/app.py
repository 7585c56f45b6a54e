"""The command, and the options that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from importlib.metadata import version
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..report.terminal import messages
from ..training.session import Selection, usual

ORDER = (
    "train", "resume", "show", "evaluate", "generate", "explain", "classify", "decide", "calibrate", "uncertain",
    "curves", "caption", "uncertainty", "diagnose", "report", "distill", "export", "recipes", "data",
    "demo",
)
"""Of the commands in the help: as one comes to need them."""


class InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=InOrder, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Train recurrent networks by stochastic-gradient MCMC and predict with the average of many weight samples.",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def tell_version(asked: bool) -> None:
    if asked:
        print(f"langevin {version('langevin')}")
        raise typer.Exit


@app.callback()
def before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What every command takes."""


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a run folder")]
Json = Annotated[bool, typer.Option("--json", help="print numbers as JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
Select = Annotated[
    str | None,
    typer.Option(help="forward, backward or thinned collection, or best: by validation (default: what validation chose "
                      "when training ended, or all; of classifiers all)"),
]
Samples = Annotated[int | None, typer.Option(help="how many samples of that collection (default: all)")]
Discard = Annotated[int, typer.Option(help="leave out so many samples from the start")]
SkipDamaged = Annotated[bool, typer.Option("--skip-damaged", help="use the sound samples when some are damaged")]
Jobs = Annotated[int | None, typer.Option(min=1, help="how many processes at a time (default: one for each core)")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace what is already there")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="override a recipe key ('langevin recipes NAME' lists them)"),
]

SELECTION = {
    "select": (Select, None), "samples": (Samples, None), "discard": (Discard, 0),
    "skip_damaged": (SkipDamaged, False),
}
"""The options behind a Selection, in its order."""


def takes_selection(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `selection` becomes the options of SELECTION, after all others."""
    shape = signature(function, eval_str=True)
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in SELECTION.items()
    ]
    parameters = [*(p for p in shape.parameters.values() if p.name != "selection"), *options]

    @wraps(function)
    def command(**given: Any) -> None:
        how, *which = (given.pop(name) for name in SELECTION)
        whole = bool(given.get("curve") or given.get("mc_dropout"))  # all collections; masks of the last sample
        function(selection=Selection(how or usual(given["folder"], *which, whole=whole), *which), **given)

    command.__signature__ = shape.replace(parameters=parameters)  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def say_skipped(problems: Iterable[str]) -> None:
    for problem in problems:
        messages.print(f"skipped: {problem}", style="yellow")
