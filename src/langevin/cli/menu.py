"""The commands by name and what each is for; the module of one is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__

MENU: dict[str, dict[str, str]] = {
    "train": {
        "train": "on a recipe, a text of your own, or labelled sentences",
        "resume": "go on with a run that was stopped, to the same bits",
        "pool": "n-gram counts beside the samples of a finished text run",
        "distill": "one network that predicts like the average of many",
        "demo": "three minutes that show what the samples are for",
    },
    "ask": {
        "generate": "continue a text",
        "explain": "the probability of each word of a sentence",
        "score": "how probable texts are: nll, perplexity, bits a byte",
        "classify": "labels of texts, and which of them to accept",
        "caption": "describe pictures",
    },
    "judge": {
        "evaluate": "scores of the last sample and of the average",
        "decide": "learn which answers to accept, and test the promise",
        "calibrate": "are the probabilities right?",
        "uncertainty": "what a run is least sure of",
        "diagnose": "can the samples be trusted?",
    },
    "look": {
        "show": "what a run is and how far it got",
        "report": "one page about a run, to open in a browser",
        "recipes": "the recipes that come with langevin, and their keys",
        "data": "the data sets that recipes name, and how to get them",
    },
    "share": {
        "serve": "answer over HTTP, with a page to play with",
        "export": "a folder that stands alone, without training data",
        "check": "is every file of a folder as it was written?",
    },
}
"""Commands by group, as one comes to need them; those of a group are in the module of its name."""

ELSEWHERE = {
    "demo": "demo",
    "pool": "train_pool",
    "classify": "ask_classes",
    "caption": "ask_captions",
    "decide": "judge_classes",
    "calibrate": "judge_classes",
    "serve": "serve",
}
"""Commands that have a module of their own."""

START = """Begin with one of these:

  langevin demo                                three minutes that show what it is for
  langevin train --text my.txt --out runs/my   on a text of your own
  langevin train --task classify --train my.csv --out runs/mine
                                               on labelled sentences
  langevin show runs/my                        what came out, and what to ask next

langevin --help lists all commands, langevin COMMAND --help explains one.
"""


class Late(TyperCommand):
    """Stands for a command until it is called, or asked for its help or its options."""

    def load(self) -> Any:
        from ..process import prepare_process
        from ..report.terminal import show_log
        from ..training.jobs import end_with_parent

        assert self.name is not None
        end_with_parent()
        prepare_process()
        show_log()
        module = import_module(f".{ELSEWHERE.get(self.name, self.rich_help_panel)}", __package__)
        return typer.main.get_group(module.app).commands[self.name]

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """That of the command itself. A shell that completes a line gets one without options."""
        if extra.get("resilient_parsing"):
            extra |= {"ignore_unknown_options": True, "allow_extra_args": True}
            return super().make_context(info_name, args, parent, **extra)
        return self.load().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Only options need the command; paths are completed by the shell."""
        return self.load().shell_complete(ctx, incomplete) if incomplete.startswith("-") else []


class Grouped(TyperGroup):
    """Shows its commands under the headings of MENU."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for group, lines in MENU.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])


app = typer.Typer(
    cls=Grouped,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    invoke_without_command=True,
    help="Train recurrent networks by stochastic-gradient MCMC and predict with the average of "
    "many weight samples.",
    epilog="langevin COMMAND --help explains a command and gives an example.",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"langevin {__version__}")
        raise typer.Exit


@app.callback()
def before_any_command(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """What every command takes."""
    if ctx.invoked_subcommand is None:
        print(START, end="")


def stand_in() -> None:
    """Never runs: `Late` calls the command itself."""


for group, lines in MENU.items():
    for name, line in lines.items():
        app.command(name, cls=Late, help=line, rich_help_panel=group)(stand_in)
