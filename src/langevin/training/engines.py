"""Where jobs run: processes on this machine, or a Ray cluster. One interface; Ray is imported only
when asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from .jobs import Job, run_side_by_side

LOCAL = "local"


class Engine(Protocol):
    """Runs jobs to their end, as `run_side_by_side` says; at_once None: as many as there is room
    for."""

    def __call__(
        self, jobs: Sequence[Job], at_once: int | None, on_look: Callable[[], None] = ...,
        on_end: Callable[[Job, int], None] = ..., *, keep_going: bool = ...,
    ) -> None: ...


@contextlib.contextmanager
def open_engine(on: str, folders: Sequence[Path]) -> Iterator[Engine]:
    """The engine that `--on` names, ready for jobs that write in these folders."""
    if on == LOCAL:
        yield run_side_by_side
        return
    from .cluster import check_nodes, join_cluster, nodes_of
    from .ray_jobs import RayEngine

    with join_cluster(on) as ray:
        check_nodes(ray, folders)
        yield RayEngine(ray, list(nodes_of(ray).values()))
