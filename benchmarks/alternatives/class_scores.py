"""Scores of an arm on labelled sentences, as one record."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F

from langevin.posterior.calibration import auroc, ece
from langevin.posterior.mixture import entropy
from langevin.posterior.risk import risk_coverage

from .records import Record
from .text_scores import fpr95


@dataclass(frozen=True)
class Said:
    """log p of each class by each draw, [draws, items, classes]."""

    valid: Tensor
    test: Tensor
    foreign: Tensor
    disagreement: dict[str, Tensor] = field(default_factory=dict)
    """Mutual information by part, where the draws are averaged already."""

    def average(self, part: str) -> Tensor:
        draws: Tensor = getattr(self, part)
        return draws.double().logsumexp(0) - math.log(len(draws))


def score_classes(said: Said, targets: dict[str, Tensor]) -> Record:
    """All scores; the temperature is fitted on validation, after averaging."""
    valid, test, truth = said.average("valid"), said.average("test"), targets["test"]
    temperature = temperature_of(valid, targets["valid"])
    each = F.nll_loss(test, truth, reduction="none")
    confidence, answer = test.exp().max(-1)
    correct = answer == truth
    cooled = torch.log_softmax(test / temperature, -1)
    return {
        "error": 1 - correct.double().mean().item(), "nll": each.mean().item(),
        "valid_nll": F.nll_loss(valid, targets["valid"]).item(),
        "softmax_temperature": temperature, "tempered_nll": F.nll_loss(cooled, truth).item(),
        "ece": ece(confidence.clamp(max=1), correct), "networks": len(said.test), "items": len(truth),
        "aurc": risk_coverage(1 - confidence, correct).aurc, "foreign": separated(said),
        "each": [round(value, 3) for value in each.tolist()],
        "wrong": "".join("0" if right else "1" for right in correct.tolist()),
    }  # fmt: skip


def temperature_of(log_p: Tensor, truth: Tensor) -> float:
    def nll(log_temperature: float) -> float:
        cooled = torch.log_softmax(log_p / math.exp(log_temperature), -1)
        return F.nll_loss(cooled, truth).item()

    best = minimize_scalar(nll, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-3})
    return math.exp(best.x)


def separated(said: Said) -> dict[str, dict[str, float]]:
    """How well entropy and mutual information tell foreign sentences from the test's."""
    found = {}
    own, other = (uncertainties(said, part) for part in ("test", "foreign"))
    several = len(said.test) > 1 or said.disagreement
    for name in own if several else ("entropy",):
        found[name] = {"auroc": auroc(other[name], own[name]), "fpr95": fpr95(other[name], own[name])}
    return found


def uncertainties(said: Said, part: str) -> dict[str, Tensor]:
    whole = entropy(said.average(part))
    if part in said.disagreement:
        return {"entropy": whole, "mutual_information": said.disagreement[part]}
    draws: Tensor = getattr(said, part).double()
    return {"entropy": whole, "mutual_information": whole - entropy(draws).mean(0)}


def reset_peak() -> None:
    """Let the system count this process's peak memory anew, where it can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_bytes() -> int | None:
    """The most memory since then."""
    try:
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None
