"""Diagnosis of one or several chains on disk: mixing, distance, temperature, and a verdict in
words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.diagnostics import (
    autocorrelation,
    correlation_time,
    distance_growth,
    effective_sample_size,
    load_arviz,
    r_hat,
    r_hat_limit,
    suggested_thinning,
    unbiased_time,
)
from ..posterior.temperature import (
    Estimate,
    configurational_temperature,
    kinetic_temperature,
    pooled,
)
from ..posterior.trend import trend
from ..posterior.verdict import Evidence, TemperatureReading, judge
from ..recipe.schedule import Pace
from ..samplers.psgld import gain, preconditioner_settings
from ..samplers.santa import annealed
from ..store.folder import RunFolder
from ..store.same_chains import refuse_different_chains
from ..store.samples import Sample
from ..process import prepare_device
from ..store.checkpoint import split_prefix
from ..tasks import Task, open_run_task
from .draws import Draws, Gradients, chains_of, collect_draws
from .mixing import Diagnosis, LayerMixing, Mixing
from ..process import Progress, SILENT

LAGS = 10
REMEMBERED = 5.0
"""Momenta of friction α hold less than a hundredth of what they held REMEMBERED/α steps before."""
MOVED = 0.01
"""Relative change of learning rate or temperature in that time from which a kinetic temperature is
not trusted."""


def diagnose_runs(
    paths: list[Path], *, split: str = "valid", discard: int = 0, batches: int | None = 8,
    probes: int = 16, skip_damaged: bool = False, task: Task | None = None,
    progress: Progress = SILENT,
) -> tuple[Diagnosis, Draws]:
    """What `langevin diagnose` says, and the arrays it comes from.

    `batches` is the number of training batches for the gradient of each sample; None for all, 0 for
    none. Who has opened the `task` already need not have its data read again.
    """
    load_arviz()
    chains = chains_of(paths)
    refuse_different_chains(chains)
    refuse_equal_seeds(chains)
    task = task or open_run_task(chains[0])
    check_split(split, task.splits)
    stores = [chain.store(skip_damaged=skip_damaged) for chain in chains]
    samples = [store.read(discard=discard) for store in stores]
    run = chains[0].recipe.run
    model = task.build_model().to(prepare_device(run.device, run.threads))
    name, settings = chains[0].recipe.sampler.resolved(task.num_data)
    gradients = Gradients(batches, settings.get("prior_var"), task.prior_means())
    advance = progress.begin(len(samples) * min(map(len, samples)))
    draws = collect_draws(
        task, model, samples, lambda sample: injected_at(sample, name, chains[0]), split=split,
        probes=probes, gradients=gradients, on_sample=advance,
    )  # fmt: skip
    pace = Pace(run, settings["lr"], settings["temperature"], task.batches_per_epoch)
    readings = temperatures(chains, draws, gradients, pace)
    means = any(sample.about.get("running_mean") for chain in samples for sample in chain)
    evidence = evidence_of(
        draws, readings, clipped_share(chains), bool(draws.temperature.any()) and not means
    )
    epoch = task.batches_per_epoch
    found = Diagnosis(
        task=task.name, runs=tuple(map(str, paths)), split=split, sampler=name,
        chains=len(chains), draws=draws.held_out.shape[1], discarded=discard,
        gradient_batches=epoch if batches is None else min(batches, epoch), epoch_batches=epoch,
        predictions=mixing_of(draws), layers=layers_of(draws), distance_growth=evidence.growth,
        clipped=evidence.clipped, temperatures=tuple(readings), verdict=tuple(judge(evidence)),
        skipped=tuple(problem for store in stores for problem in store.skipped),
    )  # fmt: skip
    return with_chain(found, draws, evidence) if evidence.is_chain else without_chain(found), draws


def with_chain(found: Diagnosis, draws: Draws, evidence: Evidence) -> Diagnosis:
    """R-hat, ESS and thinning over all predictions."""
    time = median([one.time for one in found.predictions.values()])
    limit = r_hat_limit(evidence.chains, evidence.draws, evidence.predictions)
    return replace(
        found, autocorrelation=tuple(autocorrelation(draws.held_out, LAGS).tolist()),
        correlation_time=time, thinning=suggested_thinning(time), trend=evidence.trend,
        r_hat=evidence.r_hat, r_hat_within=evidence.r_hat_within, r_hat_limit=limit,
        ess=evidence.ess,
    )  # fmt: skip


def without_chain(found: Diagnosis) -> Diagnosis:
    """What is no chain has no R-hat and no ESS."""
    return replace(
        found, layers={name: replace(one, r_hat=math.nan, ess=math.nan)
                       for name, one in found.layers.items()},
        predictions={name: replace(one, r_hat=math.nan, ess=math.nan, time=math.nan)
                     for name, one in found.predictions.items()},
    )  # fmt: skip


def evidence_of(
    draws: Draws, readings: list[TemperatureReading], clipped: float, is_chain: bool
) -> Evidence:
    """The worst R-hat decides, so that the verdict and the table tell the same one."""
    each = mixing_of(draws).values()
    values = np.stack(list(draws.functions().values()))
    chains, count = values.shape[1:]
    within = [r_hat(prediction[k : k + 1]) for prediction in values for k in range(chains)]
    return Evidence(
        chains=chains, draws=count, predictions=len(values),
        r_hat=largest([one.r_hat for one in each]), r_hat_within=largest(within),
        trend=trend(values), ess=median([one.ess for one in each]),
        time=median([unbiased_time(prediction) for prediction in values]),
        growth=distance_growth(draws.projections, draws.sizes),
        temperatures=tuple(readings), clipped=clipped, is_chain=is_chain,
    )  # fmt: skip


def mixing_of(draws: Draws) -> dict[str, Mixing]:
    return {name: Mixing(float(values.mean()), float(values.std(ddof=1)), r_hat(values),
                         effective_sample_size(values), correlation_time(values))
            for name, values in draws.functions().items()}  # fmt: skip


def layers_of(draws: Draws) -> dict[str, LayerMixing]:
    """Worst R-hat and smallest effective sample size over the projections, mean distance, T."""
    found = {}
    for name, size in draws.sizes.items():
        projections = draws.projections[name]
        each = [projections[..., i] for i in range(projections.shape[-1])]
        warm = Estimate(math.nan, math.nan)
        if name in draws.virials:
            warm = configurational_temperature(draws.virials[name], size)
        found[name] = LayerMixing(
            size, float(draws.distances[name].mean()), float(np.max([r_hat(v) for v in each])),
            float(np.min([effective_sample_size(v) for v in each])), warm.value, warm.error,
        )  # fmt: skip
    return found


def temperatures(chains: list[RunFolder], draws: Draws, gradients: Gradients, pace: Pace) -> list[TemperatureReading]:
    """Configurational over the draws, and kinetic from the last checkpoints where the sampler has
    momenta.

    The configurational one is not trusted under a flat prior, which does not confine the weights.
    """
    made = []
    if draws.virials:
        warm = configurational_temperature(
            np.sum(list(draws.virials.values()), axis=0), sum(draws.sizes[name] for name in draws.virials)
        )
        injected = float(draws.temperature.mean())
        trusted = gradients.prior_var is not None
        made.append(TemperatureReading(
            "configurational", injected, warm.value, warm.error, trusted
        ))  # fmt: skip
    readings = [reading for chain in chains if (reading := checkpoint_kinetic(chain, pace))]
    if readings:
        warm = pooled([(Estimate(reading.measured, reading.error), 1) for reading in readings])
        injected = sum(reading.injected for reading in readings) / len(readings)
        trusted = all(reading.trusted for reading in readings)
        made.append(TemperatureReading("kinetic", injected, warm.value, warm.error, trusted))
    return made


def checkpoint_kinetic(chain: RunFolder, pace: Pace) -> TemperatureReading | None:
    """The kinetic temperature in the last step of a chain; None without momenta or at a learning
    rate of 0.

    Momenta carry the rates of the steps that made them: not trusted where rate or temperature moved
    meanwhile.
    """
    loaded = chain.load_checkpoint()
    if loaded is None:
        return None
    tensors, progress = loaded
    group = progress.groups[0]
    state: dict[str, dict[str, Any]] = split_prefix(split_prefix(tensors).get("sampler", {}))
    parts, frictions = [], list[float]()
    for memory in state.values():
        if "momentum" not in memory or not group["lr"] or not memory["momentum"].numel():
            continue
        gains = None
        if "second_moment" in memory:
            settings = preconditioner_settings(group)
            gains = gain(memory["second_moment"], **{key: settings[key] for key in ("eps", "eps_inside", "ceiling")})
        friction = memory.get("friction", group["friction"])
        warm = kinetic_temperature(
            memory["momentum"], lr=group["lr"], num_data=group["num_data"], gain=gains, friction=friction
        )
        parts.append((warm, memory["momentum"].numel()))
        frictions.append(float(torch.as_tensor(friction).double().mean()))
    if not parts:
        return None
    measured, trusted = pooled(parts), not moved(pace, progress.step, min(frictions))
    return TemperatureReading("kinetic", last_injected(group), measured.value, measured.error, trusted)


def moved(pace: Pace, step: int, friction: float) -> bool:
    """Whether learning rate or temperature changed in the last steps before `step`, those that
    momenta remember."""
    first = max(0, step - math.ceil(REMEMBERED / friction)) if friction > 0 else 0
    curves = [[at(number) for number in range(first, step)] for at in (pace.lr_at, pace.temperature_at)]
    return any(max(curve) - min(curve) > MOVED * max(curve) for curve in curves)


def last_injected(group: dict[str, Any]) -> float:
    """The temperature in the last step of a parameter group, annealed where the sampler anneals."""
    if "anneal" in group:
        return annealed(group | {"steps_done": group["steps_done"] - 1})
    return float(group["temperature"])


def injected_at(sample: Sample, sampler: str, chain: RunFolder) -> float:
    """The temperature in the step that made a sample."""
    temperature = float(sample.about.get("temperature", 1.0))
    if sampler != "santa":
        return temperature
    progress = chain.progress()
    group: dict[str, Any] = progress.groups[0] if progress else {"anneal": 0.0, "explore": None}
    return annealed(group | {"temperature": temperature, "steps_done": sample.step - 1})


def clipped_share(chains: list[RunFolder]) -> float:
    """Of all training steps of all chains."""
    each = [progress for chain in chains if (progress := chain.progress())]
    return float(sum(p.clipped for p in each) / max(1, sum(p.step for p in each)))


def refuse_equal_seeds(chains: list[RunFolder]) -> None:
    """Two runs of one recipe and one seed are the same bits: they would agree whatever they do."""
    seed, count = Counter(chain.recipe.run.seed for chain in chains).most_common(1)[0]
    if count > 1:
        raise LangevinError(f"expected chains from different seeds, got seed {seed} {count} times; name each run once")


def largest(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return max(known, default=math.nan)


def median(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else math.nan
