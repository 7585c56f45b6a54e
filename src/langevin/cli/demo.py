"""The command that shows what the samples are for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ..demo.course import PAGE, PICTURE, QUICK, SENTENCES, SHARES, TEXT, DemoResult, run_demo
from ..demo.page import demo_page
from ..demo.pictures import coloured_lines
from ..demo.stages import Stages
from ..demo.tables import (
    answers_result,
    foreign_meaning,
    foreign_result,
    sentences_in_words,
    sentences_result,
    shades,
    text_in_words,
    text_result,
)
from ..errors import Interrupted
from ..files import write_atomic
from ..report.terminal import messages, passage_text, screen, text_table
from ..training.parallel import refuse_together
from .app import Json, Quiet, command_group, example

app = command_group()


@app.command(epilog=example("langevin demo --out runs/demo"))
def demo(
    out: Annotated[Path, typer.Option(help="where to keep the runs and the page")] = Path(
        "runs/demo"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="train a tenth as long, for a first look")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Three minutes: what the samples foresee, what they know not to know, what they promise.

    A model of War and Peace and a classifier of definitions are trained, each is measured beside
    what one would use instead, and a page shows it all. What is in the folder is not made again.
    """
    refuse_together("the demo")
    try:
        with Stages(SHARES, quiet or as_json) as stages:
            result = run_demo(out, QUICK if quick else {}, stages)
    except (Interrupted, KeyboardInterrupt):
        messages.print("stopped; 'langevin demo' goes on where it was")
        raise typer.Exit(130) from None
    write_atomic(out / PICTURE, coloured_lines(result.foreign).encode())
    write_atomic(out / PAGE, demo_page(result).encode())
    if as_json:
        print(json.dumps(result.to_dict() | {"page": str(out / PAGE)}))
        return
    screen.print(shown(result))
    screen.print(next_steps(out), soft_wrap=True)


def shown(result: DemoResult) -> RenderableType:
    """All of it in the terminal."""
    return Group(
        text_table(text_result(result)), Text(f"{text_in_words(result)}\n"),
        text_table(foreign_result(result)), Text(f"{foreign_meaning(result)}\n"),
        Text("surprise, letter by letter", style="bold"),
        *(passage_text(shades(line, "surprise")) for line in result.foreign.lines),
        Text("disagreement of the members on the same lines", style="bold"),
        *(passage_text(shades(line, "disagreement")) for line in result.foreign.lines), Text(),
        text_table(sentences_result(result)), Text(f"{sentences_in_words(result)}\n"),
        text_table(answers_result(result)),
    )  # fmt: skip


def next_steps(out: Path) -> Text:
    """What to type next; the page last."""
    return Text(
        f"Next:\n"
        f"  langevin serve {out / TEXT}\n"
        f"  langevin generate {out / TEXT} --prompt 'Prince Andrew '\n"
        f"  langevin classify {out / SENTENCES} 'a small dog'\n"
        f"  langevin train --text FILE         on a text of your own\n"
        f"The page with all of it: {out / PAGE}"
    )
