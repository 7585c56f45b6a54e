"""Commands side by side: so many at a time, each on its own threads, all of them stopped when
anything goes wrong.

Two torch processes with two threads each on two cores wait for each other most of the time; one
thread each, they take the cores that there are.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import LangevinError

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""In the environment of a child: how many threads it may have."""
PARENT = "LANGEVIN_PARENT"
"""In the environment of a child: the process that started it and waits for it."""
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""How a log is opened: never through a link."""
POLL, GRACE = 0.1, 30.0
"""Seconds between two looks at the children, and seconds in which they may end by themselves when
asked to."""


@dataclass(frozen=True)
class Job:
    """One command, what to call it in messages, the file that takes all it says, and what it may
    use."""

    name: str
    command: Sequence[str]
    log: Path
    cpus: int = 1
    """Threads."""
    gpus: float = 0.0
    """Of a cluster, which gives them out; on this machine all processes see all."""


def langevin_command(*arguments: object) -> list[str]:
    """This package's own command line, in this interpreter."""
    return [sys.executable, "-P", "-m", "langevin", *map(str, arguments)]


def run_side_by_side(
    jobs: Sequence[Job], at_once: int | None, on_look: Callable[[], None] = lambda: None,
    on_end: Callable[[Job, int], None] = lambda job, code: None, *, keep_going: bool = False,
) -> None:
    """Run all jobs, at most `at_once` at a time (None: as many as there are cores for), in their
    order; `on_look` is called some times a second meanwhile, `on_end` after each job with its exit
    code.

    The first job that fails (an exit code other than 0; not with `keep_going`), Ctrl-C, SIGTERM and
    any exception in the callbacks stop all the others: they get SIGTERM, then half a minute to save
    their work, then SIGKILL. A child that asks `abandoned` now and then also ends when this process
    is killed outright.
    """
    if at_once is None:
        # with torch, which a worker of a cluster has no need of
        from ..process import available_cores

        at_once = max(1, available_cores() // max((job.cpus for job in jobs), default=1))
    if at_once < 1:
        raise LangevinError(f"jobs must be at least 1, got {at_once}")
    waiting, running = list(jobs), dict[subprocess.Popen[bytes], Job]()
    with signals_as_interrupts():
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    job = waiting.pop(0)
                    running[start_job(job)] = job
                for process in [process for process in running if process.poll() is not None]:
                    if not keep_going:
                        check_exit(process.returncode, running[process])
                    on_end(running.pop(process), process.returncode)
                on_look()
                time.sleep(POLL)
        finally:
            stop(list(running))


def start_job(job: Job) -> subprocess.Popen[bytes]:
    """A child in a session of its own, so that Ctrl-C reaches it through this process and only
    once."""
    environment = os.environ | dict.fromkeys(THREADS, str(job.cpus)) | {PARENT: str(os.getpid())}
    try:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(job.log, APPEND, 0o666), "ab") as log:
            return subprocess.Popen(
                job.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
    except OSError as error:
        raise LangevinError(f"cannot start {job.name}: {error}") from None


def check_exit(code: int, job: Job) -> None:
    """Raise with the last words of a job that failed."""
    if code:
        raise LangevinError(f"{job.name} ended with exit code {code}: {last_lines(job)}")


def last_lines(job: Job) -> str:
    said = job.log.read_text(errors="replace").strip().splitlines()
    last = said[-1].removeprefix("langevin: ") if said else "it said nothing"
    return f"{last} (all it said is in {job.log})"


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """SIGTERM, patience, SIGKILL; a second Ctrl-C meanwhile ends the patience."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE
    try:
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@contextlib.contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """SIGTERM and a closed terminal raise KeyboardInterrupt like Ctrl-C; only a main thread may
    arrange that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in stopping_signals()}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def stopping_signals() -> list[signal.Signals]:
    """By which a run is stopped, and saves: Ctrl-C, SIGTERM, a closed terminal unless by nohup."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)  # Windows has none
    return numbers


PR_SET_PDEATHSIG = 1
"""From Linux's prctl.h."""


def end_with_parent() -> None:
    """In a child: be asked to stop as soon as its parent dies, however that dies. Only Linux can do
    it at once."""
    if PARENT in os.environ and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if abandoned():  # before this was arranged
            os.kill(os.getpid(), signal.SIGTERM)


def abandoned() -> bool:
    """True in a child whose parent is gone: nobody waits for it, and somebody may soon start it
    anew."""
    parent = os.environ.get(PARENT)
    return parent is not None and os.getppid() != int(parent)
