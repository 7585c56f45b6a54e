"""Facts of a run and results of an evaluation, as data and as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group

from ..store.folder import RunFolder
from ..store.samples import name_of_last
from .terminal import curve, duration, table

LINES, COUNTS = 12, 16
"""Of the learning curve and of the scores by number of samples, so many are shown."""
MANY = 6
"""Metrics that stand beside each other on 80 columns."""


def run_summary(folder: RunFolder) -> dict[str, Any]:
    """Everything `langevin show` knows, JSON-ready."""
    recipe, progress, store = folder.recipe, folder.progress(), folder.store()
    origin = folder.origin
    name, settings = recipe.sampler.resolved(folder.facts["num_data"])
    history = progress.lines() if progress else []
    step, total = (progress.step, progress.total) if progress else (0, None)
    finished, seconds = (progress.finished, progress.seconds) if progress else (False, 0.0)
    state = "finished" if finished else "not started" if not step else "can be resumed"
    if progress and progress.stopped_early:
        state = "finished (stopped early: the running average no longer improved)"
    run = recipe.run
    clipped = f"{progress.clipped} of {progress.clip_asked} steps" if progress and progress.clip_asked else "never"
    facts = {
        "recipe": recipe.title or recipe.task,
        "state": state,
        "progress": f"step {step} of {total}" if total else "step 0",
        "time": duration(seconds),
        "data": recipe.data.describe(folder.facts["num_data"]),
        "model": f"{recipe.model.layers}×{recipe.model.hidden} {recipe.model.cell}, dropout {recipe.model.dropout:g}",
        "sampler": f"{name}, " + ", ".join(f"{k} {v}" for k, v in settings.items()),
        "schedule": f"{run.epochs:g} epochs, burn-in {run.burn_in:g}, a sample every {run.sample_every:g}, "
                    f"lr {run.lr_schedule}, clip {run.clip}, {run.precision}",
        "gradient clipped": clipped,
        "samples": f"{len(store)} stored",
        "made with": f"langevin {origin.versions['langevin']}, torch {origin.versions['torch']}, "
                     f"commit {origin.commit}",
        "machine": f"{origin.machine.threads} threads on {origin.machine.device}",
    }
    if origin.teacher:
        facts["teacher"] = f"{len(origin.teacher.samples)} samples of {origin.teacher.run}"
    best = folder.choice()
    if best:
        facts["validation prefers"] = f"the {best.how} collection of {best.samples} samples"
    if folder.chains:  # each has a curve of its own; what their average scores is known only by evaluating it
        facts["chains"] = f"{len(folder.chains)}, seeds {', '.join(str(c.recipe.run.seed) for c in folder.chains)}"
        history = []
    averages = [line["average"] for line in history if "average" in line]
    return {
        "facts": facts, "step": step, "total": total, "finished": finished,
        "collection": best and best.model_dump(include={"how", "samples", "score"}),
        "samples": len(store), "seconds": seconds, "history": history,
        "valid": history[-1]["valid"] if history else None, "average": averages[-1] if averages else None,
        **({"chains": [run_summary(chain) for chain in folder.chains]} if folder.chains else {}),
    }


def learning_table(summary: dict[str, Any]) -> Group:
    """The learning curve, thinned to some lines, with learning rate and temperature at each."""
    history = summary["history"]
    last = len(history) - 1
    keep = sorted({round(i * last / (LINES - 1)) for i in range(LINES)})
    score = next(iter(history[0]["valid"]))
    made = table(
        f"learning curve, validation {score}: {curve([line['valid'][score] for line in history])}",
        ("epoch", "lr", "temperature", "training loss", "this sample", "running average"),
        [
            (
                f"{line['epoch']:.2f}", f"{line['lr']:.3g}", f"{line['temperature']:.3g}", f"{line['train_loss']:.4f}",
                f"{line['valid'][score]:.4f}", f"{line['average'][score]:.4f}" if "average" in line else "",
            )
            for line in (history[number] for number in keep)
        ],
    )
    return made


def evaluation_table(result: dict[str, Any]) -> Group:
    """A line for each model; of many metrics a line for each, which fits a terminal, and the chains apart."""
    best = result.get("collection")
    which = f"best collection ({best['how']} {best['samples']})" if best else f"{result['select']} collection"
    about = f"{which}, temperature {result['temperature']:g}"
    title = f"{result['run']} on {result['split']}, {about}"
    chains = {f"chain {c['chain']}, average of {c['samples']}": c["averaged"] for c in result.get("chains", ())}
    last = name_of_last(result["select"])
    models = {last: result["single"], f"average of {result['samples']}": result["averaged"]}
    fullest = sorted(models.values(), key=len, reverse=True)  # its order holds; what others add comes after
    names = list(dict.fromkeys(name for numbers in fullest for name in numbers))
    if len(names) <= MANY:
        average = list(models)[1]
        return models_by_metrics(title, {last: models[last], **chains, average: models[average]}, names)
    body = [(name, *(cell(numbers, name) for numbers in models.values())) for name in names]
    made = table(title, ("metric", *models), body)
    if not chains:
        return made
    known = [name for name in names if any(name in numbers for numbers in chains.values())]
    return Group(made, models_by_metrics("chain by chain", chains, known))


def models_by_metrics(title: str, models: dict[str, dict[str, float]], names: list[str]) -> Group:
    body = [(label, *(cell(numbers, name) for name in names)) for label, numbers in models.items()]
    return table(title, ("model", *names), body)


def cell(numbers: dict[str, float], name: str) -> str:
    """A metric that a model does not have is left blank."""
    return number(numbers[name]) if name in numbers else ""


def curve_table(curves: dict[str, list[float]]) -> Group:
    """The score of each collection against the number of samples."""
    total = len(curves["forward"])
    counts = sorted({round(1 + i * (total - 1) / (COUNTS - 1)) for i in range(COUNTS)})
    body = [(str(n), *(f"{curves[how][n - 1]:.4f}" for how in curves)) for n in counts]
    return table("score by number of samples", ("samples", *curves), body)


def models_table(rows: list[dict[str, Any]]) -> Group:
    """Models beside each other: metrics, calibration, what they cost, and how much of the average they keep."""
    other = ("model", "passes", "seconds_per_1000", "gap_closed")
    names = [name for name in rows[-1] if name not in other]
    body = [
        (
            row["model"], *(cell(row, n) for n in names), str(row["passes"]),
            f"{row['seconds_per_1000']:.4f}" if "seconds_per_1000" in row else "",
            "" if row["gap_closed"] is None else f"{row['gap_closed']:.0%}",
        )
        for row in rows
    ]
    return table("side by side", ("model", *names, "forward passes", "seconds for 1000", "NLL gap closed"), body)


def number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
