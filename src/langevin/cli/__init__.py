"""Every command, thin: read options, call the library, print.

Importing this brings in neither torch nor a command; `menu` has what the help needs to say.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

from typer import Typer

from ..errors import LangevinError
from . import menu

__all__ = ["main", "run"]


def main() -> None:
    """Entry point of `langevin`."""
    run(menu.app)


def run(commands: Typer) -> None:
    """One clear message and exit code 2 for what the user can mend; typer does so for its own."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # signs that a terminal cannot show are no failure
    try:
        commands()
    except LangevinError as error:
        print(f"langevin: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)
