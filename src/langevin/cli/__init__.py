"""Every command, thin: read options, call the library, print."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from rich.text import Text
from typer import Typer

from ..errors import LangevinError
from ..process import prepare_process
from ..report.terminal import messages, show_log
from . import captioning, classifying, diagnosing, evaluating, inspecting, judging, reporting, sharing, training
from .app import app

__all__ = [
    "app", "captioning", "classifying", "diagnosing", "evaluating", "inspecting", "judging",
    "main", "reporting", "run", "sharing", "training",
]


def main() -> None:
    """Entry point of `langevin`."""
    run(app)


def run(commands: Typer) -> None:
    """One clear message and exit code 2 for anything the user can mend; typer does so for its own."""
    prepare_process()
    show_log()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # signs that the terminal cannot show are no reason to fail
    try:
        commands()
    except LangevinError as error:
        messages.print(Text(f"langevin: {error}"), soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)
