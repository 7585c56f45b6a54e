"""The law: whatever happened, going on ends with the bits of a run that nothing happened to."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from langevin.errors import LangevinError
from tests.crash.faults import DIED, KINDS, Disk
from tests.crash.jobs import JOBS, Job, fingerprint, lay_out, prepare, sound
from tests.fuzz.folders import FIXTURES

KILL, TWO = "kill", "two writers"
RAISED = 3
"""The exit code of a child that ended in an exception; its text is in a file."""


@dataclass(frozen=True)
class Case:
    """One job, and what happens to it at which operation."""

    job: int
    kind: str
    at: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{JOBS[self.job].name}, {self.kind} at operation {self.at}, seed {self.seed}"


class Court:
    """Reference runs of every job, and how many file operations each takes."""

    def __init__(self, root: Path) -> None:
        self.root, self.place = root, root.parent / "place"
        self.expected: list[dict[str, str]] = []
        self.operations: list[int] = []
        self.seconds: list[float] = []
        for job in JOBS:
            lay_out(job, root, self.place)
            started = time.monotonic()
            code, said = in_child(self.place, lambda job=job: counted(job, self.place))
            assert code == 0, said
            self.seconds.append(time.monotonic() - started)
            self.operations.append(int(said))
            self.expected.append(fingerprint(self.place / job.out))
            shutil.rmtree(self.place)

    def all_cases(self) -> list[Case]:
        """Every kind of fault at every operation of every job, and as many kills and pairs."""
        cases = []
        for number, operations in enumerate(self.operations):
            cases += [Case(number, kind, at, at) for kind in (*KINDS, KILL)
                      for at in range(1, operations + 1)]
            if JOBS[number].name in ("text", "classifier", "captioner", "student"):
                cases += [Case(number, TWO, at, at) for at in range(1, operations + 1)]
        return cases

    def judge(self, case: Case) -> str:
        """What is wrong, in words; empty if the law holds."""
        job = JOBS[case.job]
        lay_out(job, self.root, self.place)
        bystander = self.place / "precious.txt"
        bystander.write_text("not yours")
        try:
            if problem := self.strike(case, job):
                return problem
            code, said = in_child(self.place, job.go_on)
            if code:
                return f"going on ended with {code}: {said}"
            found = fingerprint(self.place / job.out)
            if found != self.expected[case.job]:
                names = sorted(name for name in found.keys() | self.expected[case.job].keys()
                               if found.get(name) != self.expected[case.job].get(name))
                return f"other bits in {', '.join(names)}"
            if not sound(self.place / job.out):
                return "the folder is not sound"
            return "" if bystander.read_text() == "not yours" else "wrote outside"
        finally:
            shutil.rmtree(self.place)

    def strike(self, case: Case, job: Job) -> str:
        """Let it happen; a fault may end in a refusal, and in nothing else that is an exception."""
        if case.kind == KILL:
            rng = random.Random(f"{case.job}:{case.seed}")
            start_and_kill(self.place, job.begin, rng.random() * self.seconds[case.job])
            return ""
        if case.kind == TWO:
            first = fork(self.place, lambda: struck(job.begin, self.place, case, "middle"), "1")
            second = fork(self.place, job.go_on, "2")
            codes = [ended(first), ended(second)]
            said = (self.place / "said2").read_text() if (self.place / "said2").exists() else ""
            return "" if codes[1] in (0, 2) else f"the other writer ended with {codes}: {said}"
        code, said = in_child(self.place, lambda: struck(job.begin, self.place, case, case.kind))
        return "" if code in (0, 2, DIED) else f"the fault ended with {code}: {said}"


def make_place(place: Path) -> Path:
    """The folder with the data and what jobs find, in which recipes name their data."""
    root = place / "sound"
    root.mkdir()
    shutil.copytree(FIXTURES / "data", root / "data")
    with contextlib.chdir(root):
        prepare(root)
    return root


def counted(job: Job, place: Path) -> int:
    disk = Disk(place.resolve())
    disk.install()
    job.begin()
    return disk.count


def struck(begin: Callable[[], object], place: Path, case: Case, kind: str) -> None:
    Disk(place.resolve(), case.at, kind, case.seed).install()
    begin()


def in_child(place: Path, call: Callable[[], object]) -> tuple[int, str]:
    """Its exit code, and what it returned or how it ended."""
    code = ended(fork(place, call, ""))
    said = place / "said"
    text = said.read_text() if said.exists() else ""
    said.unlink(missing_ok=True)
    return code, text


def fork(place: Path, call: Callable[[], object], name: str) -> int:
    """A child in the place. It ends without the handlers of its parent."""
    child = os.fork()
    if child:
        return child
    code = RAISED
    plain_open = os.open
    text = ""
    try:
        os.chdir(place)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            text, code = str(call()), 0
    except LangevinError as error:
        text, code = str(error), 2
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else RAISED
    except BaseException:
        text = traceback.format_exc(limit=-8)
    finally:
        os.open = plain_open
        with contextlib.suppress(OSError), io.FileIO(str(place / f"said{name}"), "w") as file:
            file.write(text.encode())
        sys.stdout.flush()
        os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def start_and_kill(place: Path, call: Callable[[], object], delay: float) -> None:
    """kill -9 after some time; that it has ended by then is fine too."""
    child = fork(place, call, "")
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    ended(child)
    (place / "said").unlink(missing_ok=True)
