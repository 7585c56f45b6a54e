"""Ours, as it comes: the commands train and evaluate a run; their settings are the recipe's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import langevin
from langevin.errors import LangevinError
from langevin import BayesianTextClassifier

from .class_scores import Said
from .counted import chosen_counts
from .one_network import NetworksPredictor, Weights, copied
from .pooled import PooledPredictor, read_on, weigh
from .records import Record, clocked
from .sentence_sets import SentenceSplits
from .text_scores import of_nll, score_arm
from .text_sets import SCRATCH, Splits, TextSet

TOLD = ("last", "best_single", "averaged", "pooled", "adapted")


@dataclass(frozen=True)
class Commanded:
    """What a command printed, its processor seconds and the most memory that it took."""

    told: Record
    seconds: float
    bytes: int


def command(*words: str) -> Commanded:
    """One command of langevin in a process of its own, with --json."""
    line = [sys.executable, "-m", "langevin", *words, "--quiet", "--json"]
    with tempfile.TemporaryFile() as complaint:
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=complaint, text=True)
        assert process.stdout is not None
        printed = process.stdout.read().strip().splitlines()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        if process.returncode:
            complaint.seek(0)
            said = complaint.read().decode().strip().splitlines()[-1:]
            raise LangevinError(f"expected 'langevin {' '.join(words)}' to work, it says: {said}; "
                                f"see to it first")
    return Commanded(json.loads(printed[-1]), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def train_run(name: str, recipe: str, overrides: Sequence[str]) -> tuple[Path, Commanded]:
    """A run of this recipe in the scratch folder, made anew."""
    run = SCRATCH / "runs" / name
    shutil.rmtree(run, ignore_errors=True)
    settings = [word for override in overrides for word in ("--set", override)]
    return run, command("train", recipe, *settings, "--out", str(run))


def nll_of(told: Record) -> dict[str, float]:
    """The nll of whatever `langevin evaluate` tells of, by its name there."""
    found: dict[str, float] = {name: told[name]["nll"] for name in TOLD if told.get(name)}
    for name, member in (told.get("members") or {}).items():
        found[f"member {name}"] = member["nll"]
    return found


def measure_text(chosen: TextSet, seed: int, data: Splits) -> Record:
    """The posterior, pooled with counts; alone; reading on; and its last sample."""
    overrides = [*chosen.settings(), f"epochs={chosen.epochs}", f"seed={seed}"]
    run, trained = train_run(f"{chosen.name}-{seed}", "text", overrides)
    told = command("evaluate", str(run)).told
    draws = weights_of(run, data)
    posterior, last = NetworksPredictor(data.task, draws), NetworksPredictor(data.task, draws[-1:])
    choice = chosen_counts(data, chosen)
    weights = weigh(posterior, choice.counts, data)
    share = weights.network
    held_out = PooledPredictor(posterior, chosen_counts(data, chosen).counts, share)
    choice.counts.add(data.valid)
    pooled = PooledPredictor(posterior, choice.counts, share)
    on = of_nll(read_on(posterior, choice.counts, weights, data), chosen)
    also = {"alone": score_arm(posterior, data, chosen), "reading on": on,
            "last sample": score_arm(last, data, chosen)}  # fmt: skip
    settings = [one for one in overrides if not one.startswith("corpus=")]
    recipe = {"overrides": settings, "share": share, "order": choice.counts.order, "evaluate": nll_of(told)}
    return score_arm(pooled, data, chosen, held_out) | {
        "valid_nll": None, "seconds": trained.seconds, "trials": [], "recipe": recipe, "also": also,
    }  # fmt: skip


def weights_of(run: Path, data: Splits) -> list[Weights]:
    """Of the samples that are averaged unless told otherwise."""
    model, found = data.task.build_model(), list[Weights]()
    for sample in langevin.load(run).draws:
        sample.load_into(model)
        found.append(copied(model))
    return found


def measure_classes(data: SentenceSplits, recipe: str) -> tuple[Said, Record]:
    """What `langevin classify` says of validation, test and foreign sentences."""
    overrides = data.chosen.settings(data.seed)
    run, trained = train_run(f"{Path(data.chosen.name).stem}-{data.seed}-{recipe}", recipe, overrides)
    told = command("evaluate", str(run)).told
    posterior = BayesianTextClassifier.load(run)
    p, disagreement = {}, {}
    parts = ("valid", "test", "foreign")
    with clocked() as clock:
        for part in parts:
            p[part], disagreement[part] = predictions(posterior, data.texts[part])
    items = sum(len(data.texts[part]) for part in parts)
    said = Said(*(p[part].log()[None] for part in parts), disagreement)
    return said, {
        "recipe": {"name": recipe, "overrides": overrides, "weights": told["weights"],
                   "evaluate": nll_of(told)}, "trials": [],
        "seconds": trained.seconds, "seconds_per_1000": 1000 * clock.cpu / items,
        "networks": told["samples"], "peak_bytes": trained.bytes,
    }  # fmt: skip


def predictions(posterior: BayesianTextClassifier, texts: list[str]) -> tuple[Tensor, Tensor]:
    """p̄ of each class, [texts, classes], and the mutual information."""
    p = torch.from_numpy(posterior.predict_proba(texts)).double().clamp_min(1e-12)
    told = posterior.predict_with_uncertainty(texts)
    return p, torch.from_numpy(told["mutual_information"]).double()
