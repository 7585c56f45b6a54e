"""Some of the cases of `make crash`, and that the law can be broken."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

import langevin.files
from langevin.store.samples import SampleStore
from tests.crash.jobs import JOBS
from tests.crash.law import Case, Court, make_place

CASES = int(os.environ.get("LANGEVIN_CRASH_CASES", "30"))
SEED = int(os.environ.get("LANGEVIN_CRASH_SEED", "20261119"))
TEXT = 0

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs fork and /proc")


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Court:
    return Court(make_place(tmp_path_factory.mktemp("crash")))


def test_going_on_ends_with_the_same_bits(court: Court) -> None:
    every = court.all_cases()
    random.Random(SEED).shuffle(every)
    problems = {str(case): said for case in every[:CASES] if (said := court.judge(case))}
    assert not problems


def test_every_job_writes(court: Court) -> None:
    assert JOBS[TEXT].name == "text"
    assert all(count > 10 for count in court.operations)
    assert all(court.expected)


def test_a_list_that_forgets_to_return_is_caught(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples beyond the checkpoint must go: they are drawn again."""
    monkeypatch.setattr(SampleStore, "return_to", lambda store, step, known: None)
    cases = [Case(TEXT, "before", at) for at in range(1, court.operations[TEXT], 3)]
    assert any(court.judge(case) for case in cases)


class Unflushed:
    """`os`, but for what makes bytes safe."""

    def __getattr__(self, name: str) -> Any:
        return (lambda descriptor: None) if name == "fsync" else getattr(os, name)


def test_bytes_that_are_not_flushed_are_caught(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves a checkpoint in its place that is cut off."""
    monkeypatch.setattr(langevin.files, "os", Unflushed())
    cases = [Case(TEXT, "power", at, at) for at in range(40, court.operations[TEXT], 5)]
    assert any(court.judge(case) for case in cases)
