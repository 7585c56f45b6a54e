"""Captions of an image beside each other, with how sure the samples are."""

from __future__ import annotations

from typing import Any

from rich.console import Group

from .terminal import table


def caption_table(picture: dict[str, Any], samples: int, *, chains: bool = False) -> Group:
    """A line for each caption of the averaged model and of each single sample that was asked for, with its chain."""
    rows = [
        (f"average of {samples}" if not rank else "", c["caption"], f"{c['log_prob']:.2f} ± {c['log_prob_std']:.2f}")
        for rank, c in enumerate(picture["captions"])
    ]
    for single in picture["per_sample"]:
        name = f"chain {single['chain']}, sample of step" if chains else "sample of step"
        rows += [
            (f"{name} {single['step']}" if not rank else "", c["caption"], f"{c['log_prob']:.2f}")
            for rank, c in enumerate(single["captions"])
        ]
    columns = ("model", "caption", "log p (± over the samples)")
    return table(picture["image"], columns, rows, words=True)
