"""COCO's two Java programs, Stanford's PTB tokeniser and METEOR, as processes that end whatever
happens."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Lines = list[list[str]]
"""Per image a list of captions, words separated by single spaces."""

JAVA_SECONDS = 1800.0
"""After so long without an answer Java is taken to hang. A thousand images take it less than a
minute."""


class JavaFailed(Exception):
    """Java is missing, does not start, or gives no answer. The message says which."""


def ptb_tokens(captions: Sequence[Sequence[str]], marks: frozenset[str]) -> Lines:
    """COCO's tokeniser: the same program and options as its Python wrapper.

    The wrapper puts a temporary file into the installed package and does not look whether Java
    failed; here the text goes through a pipe, and as many lines must come back as went in.
    """
    folder = folder_of("tokenizer.ptbtokenizer")
    lines = [" ".join(line.split()) for image in captions for line in image]
    options = ["-cp", str(folder / "stanford-corenlp-3.4.1.jar"), "edu.stanford.nlp.process.PTBTokenizer",
               "-preserveLines", "-lowerCase", "-encoding", "UTF-8"]
    with java(options) as process:
        try:
            said, complaints = process.communicate("".join(f"{line}\n" for line in lines).encode(), JAVA_SECONDS)
        except subprocess.TimeoutExpired:
            raise JavaFailed(f"{process.args[0]} {too_late()}") from None
        if process.returncode:
            raise JavaFailed(f"{process.args[0]} ended with code {process.returncode}{last_words(complaints)}")
    tokenized = said.decode(errors="replace").split("\n")[:-1]
    if len(tokenized) != len(lines):
        raise JavaFailed(f"the tokeniser gave {len(tokenized)} lines for {len(lines)}{last_words(complaints)}")
    kept = iter(" ".join(w for w in line.split() if w not in marks) for line in tokenized)
    return [[next(kept) for _ in image] for image in captions]


def meteor_score(scorer: Any, told: Lines, given: Lines) -> float:
    """METEOR, by the scorer class of the COCO code, with its own separator kept out of the text."""
    told, given = ([[line.replace("|", "") for line in lines] for lines in part] for part in (told, given))
    options = ["-jar", "-Xmx2G", "meteor-1.5.jar", "-", "-", "-stdio", "-l", "en", "-norm"]
    with java(options, folder_of("meteor.meteor")) as process, wrapped(scorer, process) as meteor:
        late = threading.Event()

        def give_up() -> None:
            late.set()
            kill(process)

        timer = threading.Timer(JAVA_SECONDS, give_up)
        timer.start()
        try:
            value, _ = meteor.compute_score(dict(enumerate(told)), dict(enumerate(given)))
        except (OSError, ValueError) as error:  # it went away: a broken pipe, or an empty line where a number should be
            if late.is_set():
                raise JavaFailed(f"it {too_late()}") from None
            kill(process)
            raise JavaFailed(f"it gave no score{last_words(process.stderr.read())}") from error
        finally:
            timer.cancel()
    return float(value)


def folder_of(module: str) -> Path:
    """Where a module of the COCO code is installed, with its Java archive beside it."""
    return Path(importlib.import_module(f"pycocoevalcap.{module}").__file__ or "").parent


@contextlib.contextmanager
def java(options: list[str], folder: Path | None = None) -> Iterator[Any]:
    """A Java process with pipes, gone afterwards with all that it started."""
    found = shutil.which("java")
    if found is None:
        raise JavaFailed("there is no `java` on the PATH")
    # the PATH may hold a relative folder, and `folder` is another
    command = [str(Path(found).absolute()), *options]
    try:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise JavaFailed(f"{command[0]} does not start ({error.strerror})") from error
    try:
        yield process
    finally:
        kill(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):  # text that nobody will read
                pipe.close()  # type: ignore[union-attr]  # all three are pipes
        process.wait()


@contextlib.contextmanager
def wrapped(scorer: Any, process: Any) -> Iterator[Any]:
    """COCO's wrapper around a process of ours; by itself it starts one and cannot be collected when
    that fails.

    It keeps its lock when scoring fails and waits for it when it is collected: without the release
    a failure would hang.
    """
    meteor = scorer.__new__(scorer)
    meteor.meteor_p, meteor.lock = process, threading.Lock()
    try:
        yield meteor
    finally:
        if meteor.lock.locked():
            meteor.lock.release()


def kill(process: Any) -> None:
    """The process and those it started, which would keep its pipes open: `java` may be a script
    around the real one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def too_late() -> str:
    return f"gave no answer within {JAVA_SECONDS:g} s"


def last_words(raw: bytes) -> str:
    """The end of what a program said on standard error, for a message."""
    lines = raw.decode(errors="replace").strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""
