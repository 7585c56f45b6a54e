"""Measured numbers: a finished run → one JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..caption_scores import add_caption_scores
from ..captioning import Search
from ..errors import LangevinError
from ..runfolder import RunFolder
from ..workflow import Begin, Selection, evaluate_run


def record(path: Path, begin: Begin = lambda n: lambda: None) -> dict[str, Any]:
    """Validation and test numbers of a finished run, with the collection that validation prefers.

    For captions also the COCO metrics of the last sample and of the average, beam 5.
    """
    folder = RunFolder(path)
    progress = folder.progress()
    if not progress or not progress["finished"]:
        raise LangevinError(f"expected a finished run in {path}; go on with 'langevin resume {path}' first")
    numbers = {split: evaluate_run(path, split, Selection(), begin=begin, curve=True) for split in ("valid", "test")}
    if folder.recipe.task == "caption":
        numbers["test"] = add_caption_scores(numbers["test"], Selection(), Search(), path / "captions.json", begin)
    valid = numbers["valid"]["curve"]
    how, count = min(((h, n) for h in valid for n in range(len(valid[h]))), key=lambda at: valid[at[0]][at[1]])
    recipe = folder.recipe
    kept = ("single", "averaged", "each", "curve")
    return {
        "title": recipe.title, "seed": recipe.run.seed,
        "temperature": recipe.sampler.resolved(progress["num_data"])[1]["temperature"],
        "minutes": progress["seconds"] / 60, "steps": progress["step"], "num_data": progress["num_data"],
        "samples": numbers["test"]["samples"], "clipped": progress["clipped"],
        "chosen": {"select": how, "samples": count + 1, "valid": valid[how][count],
                   "test": numbers["test"]["curve"][how][count]},
        "valid": {k: numbers["valid"][k] for k in kept}, "test": {k: numbers["test"][k] for k in kept},
        "history": progress["history"], "recipe": recipe.what_is_computed(), **folder.origin,
    }
