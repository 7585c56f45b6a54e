"""Samples of chains on disk → arrays [chains, draws] of what they predict, where they are and how
far they went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ..errors import LangevinError
from ..posterior.diagnostics import FEWEST, Array, load_arviz, project, relative_distance
from ..posterior.temperature import virial
from ..store.folder import RunFolder
from ..store.samples import Sample
from ..tasks import Task

HELD_OUT = "held-out log-likelihood"


@dataclass(frozen=True)
class Draws:
    """All arrays begin with [chains, draws]; chains are cut to their last draws, as many as the
    shortest has."""

    steps: Array
    temperature: Array
    """Injected, in the step that made the draw."""
    held_out: Array
    """Mean log-likelihood of the split."""
    probes: Array
    """[…, probe] log-probabilities of single outcomes of the split."""
    places: tuple[int, ...]
    """Where the probes stand among the outcomes."""
    names: tuple[str, ...]
    """What they are."""
    sizes: dict[str, int]
    """Weights of each layer."""
    projections: dict[str, Array]
    """[…, direction] for each layer."""
    distances: dict[str, Array]
    """[chains, draws − 1]: from the draw before, relative to the norm."""
    virials: dict[str, Array]
    """θ·∇U of each layer; empty when no gradient was asked for."""

    def functions(self) -> dict[str, Array]:
        """What is judged in function space: the held-out log-likelihood and every probe."""
        named = {f"log p of {name}": self.probes[..., i] for i, name in enumerate(self.names)}
        return {HELD_OUT: self.held_out} | named


@dataclass(frozen=True)
class Gradients:
    """Which training batches make the gradient of a sample: `batches` of them, or all (None); 0 for
    no gradient."""

    batches: int | None
    prior_var: float | None
    prior_means: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """By the name of a parameter, where they are not zero."""


def collect_draws(
    task: Task, model: nn.Module, chains: list[list[Sample]], temperature: Callable[[Sample], float], *,
    split: str, probes: int, gradients: Gradients, on_sample: Callable[[], None] = lambda: None,
) -> Draws:
    """Run every sample once over the split and, for its gradient, over some training batches."""
    shortest = min(map(len, chains))
    if shortest < FEWEST:
        raise LangevinError(
            f"expected at least {FEWEST} samples of each chain to diagnose, got {shortest}; "
            f"train longer, lower sample_every or discard fewer"
        )
    rows: list[list[dict[str, Any]]] = []
    for chain in (samples[-shortest:] for samples in chains):
        rows.append([])
        before: dict[str, torch.Tensor] = {}
        for number, sample in enumerate(chain):
            sample.load_into(model)
            row = predictions(task, model, split, probes) | places(model, before)
            row["virials"] = layer_virials(task, model, gradients, len(rows) * shortest + number)
            rows[-1].append(row | {"step": sample.step, "temperature": temperature(sample)})
            before = {name: p.detach().clone() for name, p in trained(model).items()}
            on_sample()
    return assemble(rows, {name: p.numel() for name, p in trained(model).items()})


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad and p.numel()}


def predictions(task: Task, model: nn.Module, split: str, probes: int) -> dict[str, Any]:
    """The mean log-likelihood of the split and log-probabilities at evenly spaced places of it."""
    log_probs = task.log_probs(model, split)
    scores = task.scores(log_probs, split)
    flat = log_probs.flatten()
    where = sorted({round((i + 0.5) * len(flat) / probes - 0.5) for i in range(min(probes, len(flat)))})
    return {"held_out": -scores.nll, "probes": flat[where].double().numpy(),
            "places": tuple(where), "names": tuple(task.outcome(split, place) for place in where)}


def places(model: nn.Module, before: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Projections of each layer, and its distance from the draw before."""
    layers = trained(model)
    return {
        "projections": {name: project(p, name) for name, p in layers.items()},
        "distances": {name: relative_distance(before[name], p.detach()) for name, p in layers.items() if before},
    }


def layer_virials(task: Task, model: nn.Module, gradients: Gradients, draw: int) -> dict[str, float]:
    """θ·∇U of each layer, with the gradient of all training batches, or of some that differ from
    draw to draw.

    It is the force that moved the chain: with dropout on and, where state is carried, cut at the
    window. A cut gradient is not quite the slope of a potential, so that T is then an approximation
    (7 % off in θ·∇U for a small LSTM).
    """
    if gradients.batches == 0:
        return {}
    model.train()
    model.zero_grad()
    torch.manual_seed(draw)
    losses = batch_losses(task, model, gradients.batches, draw)
    count = min(gradients.batches or task.batches_per_epoch, task.batches_per_epoch)
    for loss in losses:
        (loss / count).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    made = {
        name: virial(p - gradients.prior_means.get(name, 0), p.grad, num_data=task.num_data,
                     prior_var=gradients.prior_var)
        for name, p in trained(model).items() if p.grad is not None
    }
    model.zero_grad()
    return made


def batch_losses(task: Task, model: nn.Module, batches: int | None, draw: int) -> Iterator[torch.Tensor]:
    """Losses of a whole epoch, its state carried along; or of single batches, each after one that
    warms up its state.

    The single ones are evenly spaced, from a start that moves on by the golden ratio with every
    draw, so that all draws together see the whole epoch.
    """
    total = task.batches_per_epoch
    if batches is None or batches >= total:
        carry = None
        for index in range(total):
            loss, carry = task.loss(model, draw, index, carry)
            yield loss
        return
    start = draw * 0.6180339887498949
    for number in range(batches):
        index = int((start + number / batches) % 1 * total)
        carry = None
        if index:
            with torch.no_grad():
                carry = task.loss(model, draw, index - 1, None)[1]
        yield task.loss(model, draw, index, carry)[0]


def assemble(rows: list[list[dict[str, Any]]], sizes: dict[str, int]) -> Draws:
    """Rows of numbers, one for each draw → arrays."""

    def array(*keys: str, start: int = 0) -> Array:
        return np.array([[reduce(getitem, keys, row) for row in chain[start:]] for chain in rows], dtype=float)

    def of_layers(kind: str, start: int = 0) -> dict[str, Array]:
        return {name: array(kind, name, start=start) for name in rows[0][start][kind]}

    return Draws(
        steps=array("step"), temperature=array("temperature"),
        held_out=array("held_out"), probes=array("probes"), places=rows[0][0]["places"],
        names=rows[0][0]["names"],
        sizes=sizes, projections=of_layers("projections"), distances=of_layers("distances", 1),
        virials=of_layers("virials"),
    )


def to_inference_data(draws: Draws, about: dict[str, Any] | None = None) -> Any:
    """ArviZ's `InferenceData`: projections of the layers as posterior, probes as log-likelihood,
    the rest as stats."""
    named = {name.replace("/", "_"): value for name, value in draws.projections.items()}
    return load_arviz().from_dict(
        posterior=named, log_likelihood={"probes": draws.probes},
        sample_stats={"held_out": draws.held_out, "step": draws.steps, "temperature": draws.temperature},
        coords={"direction": list(range(next(iter(named.values())).shape[-1])), "probe": list(draws.places)},
        dims={name: ["direction"] for name in named} | {"probes": ["probe"]}, attrs=about or {},
    )


def write_netcdf(draws: Draws, path: Path, about: dict[str, Any]) -> None:
    """The same as a file, which `arviz.from_netcdf` reads."""
    try:
        to_inference_data(draws, about).to_netcdf(str(path))
    except (OSError, ImportError, ValueError) as error:
        raise LangevinError(f"cannot write {path}: {error}; name a file in a folder that exists") from None


def chains_of(paths: list[Path]) -> list[RunFolder]:
    """The chains in these folders, each a run or several chains."""
    return [chain for folder in map(RunFolder, paths) for chain in (folder.chains or (folder,))]
