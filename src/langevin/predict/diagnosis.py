"""Diagnosis of one or several chains on disk: mixing, distance, temperature, and a verdict in words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.diagnostics import (
    Array,
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
from ..store.folder import RunFolder, refuse_different_chains
from ..store.samples import Sample
from ..process import prepare_device
from ..store.checkpoint import split_prefix
from ..tasks import open_run_task
from .draws import Draws, Gradients, chains_of, collect
from ..process import Progress, SILENT

LAGS = 10
REMEMBERED = 5.0
"""Momenta of friction α hold less than a hundredth of what they held REMEMBERED/α steps before."""
MOVED = 0.01
"""Relative change of learning rate or temperature in that time from which a kinetic temperature is not trusted."""


def diagnose_runs(
    paths: list[Path], *, split: str = "valid", discard: int = 0, batches: int | None = 8, probes: int = 16,
    skip_damaged: bool = False, progress: Progress = SILENT,
) -> tuple[dict[str, Any], Draws]:
    """Everything `langevin diagnose` knows, JSON-ready, and the arrays it comes from.

    `batches` is the number of training batches for the gradient of each sample; None for all, 0 for none.
    """
    load_arviz()
    chains = chains_of(paths)
    refuse_different_chains(chains)
    refuse_equal_seeds(chains)
    task = open_run_task(chains[0])
    check_split(split, task.splits)
    samples = [chain.store(skip_damaged=skip_damaged).read(discard=discard) for chain in chains]
    model = task.build_model().to(prepare_device(chains[0].recipe.run.device, chains[0].recipe.run.threads))
    name, settings = chains[0].recipe.sampler.resolved(task.num_data)
    gradients = Gradients(batches, settings.get("prior_var"), getattr(task, "prior_means", dict)())
    advance = progress.begin(len(samples) * min(map(len, samples)))
    draws = collect(
        task, model, samples, lambda sample: injected_at(sample, name, chains[0]), split=split, probes=probes,
        gradients=gradients, on_sample=advance,
    )
    whole = "all" if batches is None or batches >= task.batches_per_epoch else batches
    facts = {
        "task": task.name, "runs": [str(path) for path in paths], "split": split, "sampler": name,
        "chains": len(chains), "draws": draws.held_out.shape[1], "discarded": discard, "gradient_batches": whole,
    }
    pace = Pace(chains[0].recipe.run, settings["lr"], settings["temperature"], task.batches_per_epoch)
    readings = temperatures(chains, draws, gradients, pace)
    means = any(sample.about.get("running_mean") for chain in samples for sample in chain)
    is_chain = bool(draws.temperature.any()) and not means
    return facts | summarise(draws, readings, clipped_share(chains), is_chain), draws


def summarise(
    draws: Draws, readings: list[TemperatureReading], clipped: float, is_chain: bool
) -> dict[str, Any]:
    """From arrays to numbers and words; NaN becomes None. What is no chain has no R-hat, no ESS."""
    functions = {name: mixing_numbers(values) for name, values in draws.functions().items()}
    layers = {name: layer_numbers(draws, name) for name in draws.sizes}
    evidence = evidence_of(draws, functions, readings, clipped, is_chain)
    time = median([numbers["time"] for numbers in functions.values()])
    mixing = {
        "autocorrelation": autocorrelation(draws.held_out, LAGS).tolist(), "correlation_time": time,
        "thinning": suggested_thinning(time), "trend": evidence.trend, "r_hat": evidence.r_hat,
        "r_hat_within": evidence.r_hat_within, "ess": evidence.ess,
        "r_hat_limit": r_hat_limit(evidence.chains, evidence.draws, evidence.predictions),
    }  # fmt: skip
    if not is_chain:
        mixing = dict.fromkeys(mixing, math.nan)
        for numbers in (*functions.values(), *layers.values()):
            numbers |= {key: math.nan for key in ("r_hat", "ess", "time") if key in numbers}
    result: dict[str, Any] = without_nan({
        "function": functions, "layers": layers, "distance_growth": evidence.growth,
        "clipped": clipped, "temperatures": [asdict(reading) for reading in readings],
        "verdict": [asdict(finding) for finding in judge(evidence)], **mixing,
    })
    return result


def evidence_of(
    draws: Draws, functions: dict[str, dict[str, float]], readings: list[TemperatureReading],
    clipped: float, is_chain: bool,
) -> Evidence:
    """The worst R-hat decides, so that the verdict and the table tell the same one."""
    values = np.stack(list(draws.functions().values()))
    chains, count = values.shape[1:]
    within = [r_hat(prediction[k : k + 1]) for prediction in values for k in range(chains)]
    return Evidence(
        chains=chains, draws=count, predictions=len(values),
        r_hat=largest([numbers["r_hat"] for numbers in functions.values()]),
        r_hat_within=largest(within), trend=trend(values),
        ess=median([numbers["ess"] for numbers in functions.values()]),
        time=median([unbiased_time(prediction) for prediction in values]),
        growth=distance_growth(draws.projections, draws.sizes),
        temperatures=tuple(readings), clipped=clipped, is_chain=is_chain,
    )


def mixing_numbers(values: Array) -> dict[str, float]:
    return {
        "mean": float(values.mean()), "std": float(values.std(ddof=1)), "r_hat": r_hat(values),
        "ess": effective_sample_size(values), "time": correlation_time(values),
    }


def layer_numbers(draws: Draws, name: str) -> dict[str, float]:
    """Worst R-hat and smallest effective sample size over the projections, mean distance, T."""
    projections = draws.projections[name]
    each = [projections[..., i] for i in range(projections.shape[-1])]
    warm = Estimate(math.nan, math.nan)
    if name in draws.virials:
        warm = configurational_temperature(draws.virials[name], draws.sizes[name])
    return {
        "size": draws.sizes[name], "distance": float(draws.distances[name].mean()),
        "r_hat": float(np.max([r_hat(values) for values in each])),
        "ess": float(np.min([effective_sample_size(values) for values in each])),
        "temperature": warm.value, "temperature_error": warm.error,
    }


def temperatures(chains: list[RunFolder], draws: Draws, gradients: Gradients, pace: Pace) -> list[TemperatureReading]:
    """Configurational over the draws, and kinetic from the last checkpoints where the sampler has momenta.

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
    """The kinetic temperature in the last step of a chain; None without momenta or at a learning rate of 0.

    Momenta carry the rates of the steps that made them: not trusted where rate or temperature moved meanwhile.
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
    """Whether learning rate or temperature changed in the last steps before `step`, those that momenta remember."""
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


def without_nan(value: Any) -> Any:
    """NaN and ∞ are no JSON: None for the first, a large number for the second."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(1e300, value)
    return value
