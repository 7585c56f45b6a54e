"""Facts of a run, as data and as a table of how it learned."""

from __future__ import annotations

from typing import Any

from rich.console import Group

from ..store.folder import RunFolder
from ..store.samples import SampleStore
from .tables import cell, heading
from .terminal import curve, duration, table

LINES = 12
"""Of the learning curve, so many are shown."""


def count_samples(store: SampleStore) -> str:
    """How many are stored, and how many are listed only."""
    missing = sum(not sample.path.is_file() for sample in store.samples)
    beside = f"; {missing} more are listed but not there" if missing else ""
    return f"{len(store) - missing} stored{beside}"


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
        **data_facts(folder),
        "model": f"{recipe.model.layers}×{recipe.model.hidden} {recipe.model.cell}, dropout {recipe.model.dropout:g}",
        "sampler": f"{name}, " + ", ".join(f"{k} {v}" for k, v in settings.items()),
        "schedule": run.describe(),
        "gradient clipped": clipped,
        "samples": count_samples(store),
        "made with": f"langevin {origin.versions['langevin']}, torch {origin.versions['torch']}, "
                     f"commit {origin.commit}",
        "machine": f"{origin.machine.threads} threads on {origin.machine.device}",
    }
    if origin.teacher:
        facts["teacher"] = f"{len(origin.teacher.samples)} samples of {origin.teacher.run}"
    best = folder.choice()
    if best:
        facts["validation prefers"] = f"the {best.how} collection of {best.samples} samples"
    # each has a curve of its own; what their average scores is known only by evaluating it
    if folder.chains:
        facts["chains"] = f"{len(folder.chains)}, seeds {', '.join(str(c.recipe.run.seed) for c in folder.chains)}"
        history = []
    averages = [line["average"] for line in history if "average" in line]
    return {
        "facts": facts, "step": step, "total": total, "finished": finished,
        "collection": best and best.model_dump(include={"how", "samples", "score"}),
        "score": recipe.data.score, "samples": len(store), "seconds": seconds, "history": history,
        "valid": history[-1]["valid"] if history else None, "average": averages[-1] if averages else None,
        **({"chains": [run_summary(chain) for chain in folder.chains]} if folder.chains else {}),
    }


def data_facts(folder: RunFolder) -> dict[str, str]:
    """What a run learnt from; of pictures, which network saw them."""
    told = {"data": folder.recipe.data.describe(folder.facts["num_data"])}
    if seen := folder.facts.get("extractor"):
        how = seen["preprocess"].split()[0]
        told["pictures seen by"] = f"{seen['name']}, sha256 {seen['sha256'][:12]}…, {how}"
    return told


def learning_table(summary: dict[str, Any]) -> Group:
    """The learning curve, thinned to some lines, with learning rate and temperature at each."""
    history = summary["history"]
    last = len(history) - 1
    keep = sorted({round(i * last / (LINES - 1)) for i in range(LINES)})
    score = summary["score"]
    fewer = f" ({len(keep)} of {len(history)} lines)" if len(keep) < len(history) else ""
    made = table(
        f"learning curve{fewer}, validation {heading(score)}: "
        f"{curve([line['valid'][score] for line in history])}",
        ("epoch", "lr", "temperature", "training loss", "this sample", "running average"),
        [
            (
                f"{line['epoch']:.2f}", f"{line['lr']:.3g}", f"{line['temperature']:.3g}", f"{line['train_loss']:.4f}",
                cell(line["valid"], score), cell(line.get("average", {}), score),
            )
            for line in (history[number] for number in keep)
        ],
    )
    return made
