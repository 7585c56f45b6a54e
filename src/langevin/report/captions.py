"""Captions of an image beside each other, with how sure the samples are."""

from __future__ import annotations

from rich.console import Group

from ..predict.results import PictureCaptions
from .terminal import table


def caption_table(picture: PictureCaptions, samples: int, *, chains: bool = False) -> Group:
    """A line for each caption of the average, and of each single sample that was asked for."""
    rows = [
        (
            f"average of {samples}" if not rank else "",
            c.caption,
            f"{c.log_p:.2f} ± {c.log_p_std:.2f}",
        )
        for rank, c in enumerate(picture.captions)
    ]
    named = set[tuple[int, int]]()
    for c in picture.per_sample:
        name = f"chain {c.chain}, sample of step {c.step}" if chains else f"sample of step {c.step}"
        rows.append(("" if (c.chain, c.step) in named else name, c.caption, f"{c.log_p:.2f}"))
        named.add((c.chain, c.step))
    columns = ("model", "caption", "log p (± over the samples)")
    return table(picture.image, columns, rows, words=True)
