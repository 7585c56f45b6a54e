"""A command, or the door, asked in this process: what it answers, in what way it ends."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import langevin
from langevin.cli import run
from langevin.cli.menu import app
from langevin.errors import LangevinError

TEXT = "The Mason said"
TEXTS = ["where is Rome ?", "", "who was Homer ?"]
PICTURES = ["test0.jpg", "test4.jpg"]
LONGEST = 60
"""Seconds after which a case counts as one that hangs; a sound one takes less than one."""


@dataclass(frozen=True)
class Answer:
    """How it ended: exit code, what was printed, what was said beside, and a traceback if any."""

    code: int
    printed: str
    said: str
    crash: str = ""


class Hangs(BaseException):
    """No exception that a command could handle."""


def ask(*words: str) -> Answer:
    """A command of `langevin`."""
    before = sys.argv
    sys.argv = ["langevin", *words]
    try:
        return caught(lambda: run(app))
    finally:
        sys.argv = before


def ask_door(folder: str) -> Answer:
    """What `langevin.load` gives, asked what its kind can answer."""
    return caught(lambda: print(json.dumps(answers_of(langevin.load(folder)), default=plain)))


def answers_of(model: Any) -> Any:
    if hasattr(model, "score"):
        return [model.score(TEXT), model.next(TEXT, top=3), "".join(model.generate("The ", 8))]
    if hasattr(model, "predict"):
        return model.predict(TEXTS)
    return model.caption(np.load("data/features.npy")[[27, 31]].astype(np.float32), beam=2)


def plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


def caught(call: Callable[[], object]) -> Answer:
    """Run it with all it prints kept, and whatever it raises; leave the process as it was."""
    out, err = io.StringIO(), io.StringIO()
    code, crash, threads = 0, "", torch.get_num_threads()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), heard(err), in_time():
        try:
            call()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        except LangevinError as error:
            code = 2
            print(f"langevin: {error}", file=sys.stderr)
        except (Exception, KeyboardInterrupt, Hangs):
            code, crash = 1, traceback.format_exc(limit=-6)
    torch.set_num_threads(threads)
    return Answer(code, out.getvalue(), err.getvalue(), crash)


@contextlib.contextmanager
def heard(err: io.StringIO) -> Iterator[None]:
    """Warnings of the log, wherever the process shows them, are part of what is said."""
    handler = logging.StreamHandler(err)
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger("langevin")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """A case that hangs is stopped; it has no bearing on one that ends."""

    def late(*_: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by name; of links where they lead."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = b"link " + bytes(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
        elif not path.is_dir():
            found[name] = b"no file"
        else:
            found[name + "/"] = b""
    return found
