"""Every command, thin: read options, call the library, print.

Importing this brings in neither torch nor a command; `menu` has what the help needs to say.
"""

from __future__ import annotations

import contextlib
import os
import sys
from io import TextIOWrapper
from typing import NoReturn

from typer import Typer

from ..errors import LangevinError
from ..report.controls import show_controls
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
        try:
            commands()
        finally:
            sys.stdout.flush()
    except LangevinError as error:
        refuse(str(error))
    except BrokenPipeError:
        forget_output()
        sys.exit(141)
    except OSError as error:
        forget_output()
        refuse(
            f"cannot use {error.filename or 'the output'}: {error.strerror or error}; "
            f"check its name, its permissions and the space that is left"
        )
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or out_of_memory(error)):
            raise
        refuse(
            "out of memory; lower hidden, batch_size or window, or make room. "
            "What was saved before is whole"
        )


def refuse(message: str) -> NoReturn:
    """One line, though several processes may have the same to say."""
    if not under_torchrun() or first_to_speak():
        print(show_controls(f"langevin: {message}"), file=sys.stderr)
    sys.exit(2)


def under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def first_to_speak() -> bool:
    from ..training.parallel import is_first_to_speak  # brings in torch

    return is_first_to_speak()


def out_of_memory(error: RuntimeError) -> bool:
    """Of the machine or of a graphics card: torch has no class of its own for the first."""
    return "allocate memory" in str(error) or "out of memory" in str(error)


def forget_output() -> None:
    """What nobody can take any more would be written, and fail, once again as Python ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
