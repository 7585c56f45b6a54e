"""Averages over many chains on a Ray cluster: added as a tree where the samples are read; what
comes back is one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..process import prepare_device
from ..store.folder import RunFolder
from ..store.samples import Sample
from ..tasks import open_run_task
from ..tasks.scoring import Across, Pass, kept_of_validation, score_chain
from .cluster import check_nodes, join_cluster, nodes_of
from .engines import LOCAL
from .ray_jobs import RETRIES

PIECES = 4
"""Of the work for each processor of the cluster: so many, as chains are not all equally quick."""


@contextlib.contextmanager
def open_passes(on: str, folder: Path) -> Iterator[Across | None]:
    """What makes passes over the chains of a folder where `--on` says; None where that is here."""
    if on == LOCAL:
        yield None
        return
    if not RunFolder(folder).chains:
        raise LangevinError(f"expected a folder of several chains for --on, got one run in {folder}; leave --on out")
    with join_cluster(on) as ray:
        check_nodes(ray, [folder])
        yield lambda chains, split, rival, curve: average_there(ray, folder.resolve(), chains, split, rival, curve)


def average_there(
    ray: Any, folder: Path, chains: list[list[Sample]], split: str, rival: Sample | None, curve: bool
) -> Pass:
    """Each task goes over a share of the chains; then pairs are joined until one is left, the one
    that comes here."""
    cpus = sum(one["Resources"]["CPU"] for one in nodes_of(ray).values())
    share = -(-len(chains) // max(1, round(PIECES * cpus)))
    there = [[replace(sample, path=sample.path.resolve()) for sample in chain] for chain in chains]
    pieces = [there[at : at + share] for at in range(0, len(there), share)]
    options = {"num_cpus": 1, "max_retries": RETRIES}
    read = ray.remote(**options)(read_chains)
    join = ray.remote(**options)(Pass.join)
    passes = [read.remote(folder, piece, split, rival, curve) for piece in pieces]
    while len(passes) > 1:
        pairs = [passes[at : at + 2] for at in range(0, len(passes), 2)]
        passes = [join.remote(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    try:
        whole: Pass = ray.get(passes[0])
    except ray.exceptions.RayError as error:
        lines = str(getattr(error, "cause", None) or error).strip().splitlines()
        raise LangevinError(f"expected averages of {folder} from the cluster, got {lines[-1] if lines else error!r}; "
                            f"leave --on out to average here") from None
    return whole


def read_chains(folder: Path, chains: list[list[Sample]], split: str, rival: Sample | None, curve: bool) -> Pass:
    """On a node: the joined pass over some chains."""
    run = RunFolder(folder)
    task = open_run_task(run)
    model = task.build_model().to(prepare_device(run.recipe.run.device, 1))
    kept = kept_of_validation if split == "valid" else None
    whole: Pass | None = None
    for chain in chains:
        found = score_chain(task, model, chain, split, curve=curve, rival=rival, kept_by=kept)
        whole = found if whole is None else whole.join(found)
    assert whole is not None  # no share is empty
    return whole
