"""The command that adds members to a finished run."""

from __future__ import annotations

import json

from ..report.progress import Bars
from ..report.terminal import screen, table
from ..store.folder import RunFolder
from ..training.members import add_members
from .app import Folder, Json, Quiet, command_group, example
from .outcome import members_rows, say_next

TOLD = ("order", "bytes", "nll_by_order", "weights", "weighed", "tokens", "nll")
"""What is said of the members by --json."""
app = command_group()


@app.command(epilog=example("langevin pool runs/my"))
def pool(folder: Folder, quiet: Quiet = False, as_json: Json = False) -> None:
    """Learn n-gram counts of a finished run's text and weigh them against its samples.

    What was there before is made anew. The counts lie in the run folder and contain the text;
    whatever asks the run from then on asks both.
    """
    run = RunFolder(folder)
    with Bars(quiet or as_json) as progress:
        record = add_members(run, progress, anew=True)
    if as_json:
        told = record.to_dict()
        print(json.dumps({key: told[key] for key in TOLD}))
        return
    rows = [("average of the samples", f"{record.nll['network']:.4f}"), *members_rows(record)]
    screen.print(table(f"{folder}: validation nll", ("model", "nll"), rows))
    say_next(folder, "evaluate")
