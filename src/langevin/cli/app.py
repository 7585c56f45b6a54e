"""The options that several commands share, and what turns some of them into a Selection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..predict.decision import CONFIDENCE
from ..report.terminal import messages
from ..posterior.selection import ALL, Selection
from .options import add_options


def command_group() -> typer.Typer:
    """What the commands of a module register with; `menu` takes them from its `app`."""
    return typer.Typer(add_completion=False, rich_markup_mode=None)


def finite(value: float | None) -> float | None:
    """Refuses nan and infinity, which no range of an option keeps out."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"expected a finite number, got {value}")
    return value


def example(line: str) -> str:
    """The end of a command's help: one line to copy, which is not wrapped."""
    return f"\b\nExample:\n  {line}"


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a run folder")]
Split = Annotated[str, typer.Option(help="train, valid or test")]
MASKS = 10_000
"""Of Monte-Carlo dropout, at most."""
Json = Annotated[bool, typer.Option("--json", help="print numbers as JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
Select = Annotated[
    str | None,
    typer.Option(
        help="forward, backward or thinned collection, or best: by validation (default: what "
        "validation chose when training ended, or all; of classifiers all)"
    ),
]
Samples = Annotated[
    int | None, typer.Option(help="how many samples of that collection (default: all)")
]
Discard = Annotated[int, typer.Option(help="leave out so many samples from the start")]
SkipDamaged = Annotated[
    bool, typer.Option("--skip-damaged", help="use the sound samples when some are damaged")
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="how many processes at a time (default: one for each core)"),
]
On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="where chains run: local, or a Ray cluster: ray (the one that runs here, or a new "
        "one), ray://HOST:PORT, HOST:PORT",
    ),
]
Gpus = Annotated[
    float | None,
    typer.Option(
        "--gpus-per-chain",
        min=0,
        help="of a Ray cluster, parts too (default: 1 where the device is a GPU)",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace what is already there")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="override a recipe key ('langevin recipes NAME' lists them)",
    ),
]

Tokens = Annotated[
    int, typer.Option(min=1, help="look at about so many tokens, evenly spread over the split")
]
Risk = Annotated[
    float | None, typer.Option(help="at most this share of errors among the accepted answers")
]
Coverage = Annotated[float | None, typer.Option(help="accept about this share of the answers")]
Confidence = Annotated[
    float | None, typer.Option(help=f"with which the risk is promised (default: {CONFIDENCE:g})")
]
Statistic = Annotated[
    str,
    typer.Option(help="auto, max_probability, entropy, mutual_information or standard_deviation"),
]
LengthPower = Annotated[
    float,
    typer.Option(
        callback=finite, help="divide scores of captions by length to this power; 0: plain"
    ),
]
MaxLength = Annotated[int, typer.Option(help="words of the longest caption")]

SELECTION = {
    "select": (Select, None),
    "samples": (Samples, None),
    "discard": (Discard, 0),
    "skip_damaged": (SkipDamaged, False),
}
"""The options behind a Selection, in its order."""


def takes_selection(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `selection` becomes the options of SELECTION, after all others."""

    def gather(own: dict[str, Any], others: dict[str, Any]) -> Selection:
        how, *which = own.values()
        whole = bool(
            others.get("curve") or others.get("mc_dropout")
        )  # all collections; masks of the last sample
        return Selection(how or (ALL if whole else None), *which)

    return add_options(function, "selection", SELECTION, gather, last=True)


def say_skipped(problems: Iterable[str]) -> None:
    for problem in problems:
        messages.print(f"skipped: {problem}", style="yellow")


MOST_UNKNOWN = 0.03
"""A share of unknown words above which numbers of a text say little."""


def say_unknown(share: float | None, source: str | None = None) -> None:
    """Warn of a text that looks familiar because its words became <unk>."""
    if share is not None and share > MOST_UNKNOWN:
        where = f"{source}: " if source else ""
        messages.print(
            f"{where}{100 * share:.0f} % of the tokens are <unk>, for unknown: the numbers do not "
            f"compare with those of other texts",
            style="yellow",
            soft_wrap=True,
        )
