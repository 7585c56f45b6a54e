"""Commands on the nodes of a Ray cluster, as `jobs.run_side_by_side` runs them here."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from .jobs import GRACE, PARENT, POLL, Job, check_exit, signals_as_interrupts, start_job, stop

RETRIES = 100
"""Times that a job may lose its process, its worker or its node. Each time it goes on from its
checkpoint."""
STOPPED = 130
"""The exit code of a command that a signal stopped, and that has saved."""
OURS = "LANGEVIN_"
"""How the variables begin that the nodes get from here."""


class Killed(Exception):
    """Somebody else ended the process of a job; another one goes on."""


def carry_out(job: Job, python: str, here: str, variables: dict[str, str]) -> int:
    """On a node: run the command as a child of this worker, which ends with it; its exit code.

    An interpreter is that of the node, which may be at another place.
    """
    if not job.log.parent.is_dir():
        raise LangevinError(f"{platform.node()} does not see {job.log.parent}; mount the same storage there")
    os.environ.update(variables)
    if Path(here).is_dir():
        os.chdir(here)
    first = sys.executable if job.command[0] == python else job.command[0]
    child = start_job(replace(job, command=[first, *job.command[1:]]))
    try:
        while child.poll() is None:
            time.sleep(POLL)
    finally:  # cancelled: as by Ctrl-C
        stop([child])
    if child.returncode < 0 or child.returncode == STOPPED:
        raise Killed(f"{job.name} was killed {RETRIES} times")
    return int(child.returncode)


class RayEngine:
    """Runs jobs on a cluster that was joined. The cluster finds room for each, and another node
    where one is lost."""

    def __init__(self, ray: Any, nodes: Sequence[dict[str, Any]]) -> None:
        self.ray, self.nodes = ray, nodes

    def __call__(
        self, jobs: Sequence[Job], at_once: int | None, on_look: Callable[[], None] = lambda: None,
        on_end: Callable[[Job, int], None] = lambda job, code: None, *, keep_going: bool = False,
    ) -> None:
        for job in jobs:
            self.refuse_too_large(job)
        waiting, running = list(jobs), dict[Any, Job]()
        with signals_as_interrupts():
            try:
                while waiting or running:
                    while waiting and (at_once is None or len(running) < at_once):
                        job = waiting.pop(0)
                        running[self.submit(job)] = job
                    for reference in self.ray.wait(list(running), num_returns=1, timeout=POLL)[0]:
                        job = running.pop(reference)
                        code = self.code_of(reference, job)
                        if not keep_going:
                            check_exit(code, job)
                        on_end(job, code)
                    on_look()
            finally:
                self.withdraw(list(running))

    def refuse_too_large(self, job: Job) -> None:
        """What no node could ever run would wait for ever."""
        for what, needed in (("CPU", job.cpus), ("GPU", job.gpus)):
            most = max(one["Resources"].get(what, 0.0) for one in self.nodes)
            if needed > most:
                raise LangevinError(f"expected a node with {needed:g} {what}s for {job.name}, the largest of the "
                                    f"cluster has {most:g}; ask for fewer by --{what.lower()}s-per-chain")

    def submit(self, job: Job) -> Any:
        ours = {name: value for name, value in os.environ.items() if name.startswith(OURS) and name != PARENT}
        task = self.ray.remote(carry_out).options(
            name=job.name, num_cpus=job.cpus, num_gpus=job.gpus, max_retries=RETRIES, retry_exceptions=[Killed],
            scheduling_strategy="SPREAD",
        )  # fmt: skip
        return task.remote(job, sys.executable, str(Path.cwd()), ours)

    def code_of(self, reference: Any, job: Job) -> int:
        """The exit code; 1, and the reason in the log, where the cluster could not run the
        command."""
        try:
            return int(self.ray.get(reference))
        except self.ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            lines = str(cause or error).strip().splitlines()
            with contextlib.suppress(OSError), job.log.open("a") as log:
                log.write(f"langevin: the cluster gave it up: {lines[-1] if lines else error!r}\n")
            return 1

    def withdraw(self, references: list[Any]) -> None:
        """Ask all that run to stop, as by Ctrl-C, and wait until they have saved."""
        if not references:
            return
        for reference in references:
            self.ray.cancel(reference)
        self.ray.wait(references, num_returns=len(references), timeout=GRACE + 5)
