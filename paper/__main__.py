"""`python -m paper`: the targets and their state; `python -m paper TARGET` runs what is missing of
one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from langevin.cli import run
from langevin.process import prepare_process
from langevin.report.terminal import show_log
from paper.commands import record, reproduce, tables
from paper.crossvalidating import folds

COMMANDS: dict[str, Callable[..., None]] = {
    "reproduce": reproduce, "record": record, "tables": tables, "folds": folds,
}


class TargetFirst(TyperGroup):
    """A first word that names no command is a target: `reproduce` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in {*self.commands, "--help", "-h"}:
            args = ["reproduce", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=TargetFirst, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="The tables and figures of the paper, made anew: python -m paper lists them, python -m paper TARGET runs one.",
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback()
def before_any_command() -> None:
    """The process, as `langevin` prepares it."""
    prepare_process()
    show_log()


for name, command in COMMANDS.items():
    app.command(name)(command)


if __name__ == "__main__":
    run(app)
