"""The command, and the options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Train recurrent networks by stochastic-gradient MCMC and predict with the average of many weight samples.",
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a run folder")]
Json = Annotated[bool, typer.Option("--json", help="print numbers as JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
Select = Annotated[str, typer.Option(help="forward, backward or thinned collection")]
Samples = Annotated[int | None, typer.Option(help="how many samples to average (default: all)")]
Discard = Annotated[int, typer.Option(help="leave out so many samples from the start")]
SkipDamaged = Annotated[bool, typer.Option("--skip-damaged", help="use the sound samples when some are damaged")]
Jobs = Annotated[int | None, typer.Option(min=1, help="how many processes at a time (default: one for each core)")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace what is already there")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a recipe key")]
