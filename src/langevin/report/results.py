"""Measured numbers: a finished run → one JSON file; all those files → the table of the README."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import LangevinError
from ..runfolder import RunFolder
from ..workflow import Begin, Selection, evaluate_run

PAPER = {
    "wp-lstm-rmsprop": 1.3607, "wp-gru-rmsprop": 1.2759, "wp-rnn-rmsprop": 1.4239,
    "wp-lstm-psgld": 1.3375, "wp-gru-psgld": 1.2561, "wp-rnn-psgld": 1.4093,
}
"""Table 2 of the paper: test cross-entropy on War and Peace, nats per character."""

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"


def record(path: Path, begin: Begin = lambda n: lambda: None) -> dict[str, Any]:
    """Validation and test numbers of a finished run, with the collection that validation prefers."""
    folder = RunFolder(path)
    progress = folder.progress()
    if not progress or not progress["finished"]:
        raise LangevinError(f"expected a finished run in {path}; go on with 'langevin resume {path}' first")
    numbers = {split: evaluate_run(path, split, Selection(), begin=begin, curve=True) for split in ("valid", "test")}
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


def wp_table(results: dict[str, dict[str, Any]]) -> str:
    """War and Peace, in Markdown: the paper's number beside ours, for each run that was recorded."""
    lines = [
        "War and Peace, test set, nats per byte (lower is better; 20 epochs, one seed):",
        "",
        "| run | temperature | paper | last sample | average of all | best collection¹ |",
        "|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        chosen, score = r["chosen"], r["test"]
        paper = f"{PAPER[name]:.4f}" if name in PAPER else "—"
        lines.append(
            f"| `{name}` | {r['temperature']:g} | {paper} | {score['single']['nll']:.4f} | "
            f"{score['averaged']['nll']:.4f} ({r['samples']}) | {chosen['test']:.4f} "
            f"({chosen['select']}, {chosen['samples']}) |"
        )
    lines += ["", "¹ of the forward, backward and thinned ones, by the validation set."]
    return "\n".join(lines)


def refresh(readme: str, folder: Path) -> str:
    """The README with its table made anew from the files in `results/`."""
    order = sorted(folder.glob("wp-*.json"), key=lambda path: (["lstm", "gru", "rnn"].index(path.stem.split("-")[1]),
                                                               "rmsprop" not in path.stem, path.stem))
    results = {path.stem: json.loads(path.read_text()) for path in order}
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{wp_table(results)}\n{END}{rest.split(END)[1]}"
