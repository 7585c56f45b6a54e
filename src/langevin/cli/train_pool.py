"""The command that adds members to a finished run."""

from __future__ import annotations

import json

from ..report.progress import Bars
from ..report.terminal import screen, table
from ..store.folder import RunFolder
from ..store.linear_members import PoolRecord
from ..store.members import NETWORK, MembersRecord
from ..tasks.members import add_linear_members
from ..training.members import add_members
from .app import Folder, Json, Quiet, command_group, example
from .outcome import members_rows, say_next

TOLD = ("order", "bytes", "nll_by_order", "weights", "weighed", "tokens", "items", "nll", "error")
"""What is said of the members by --json."""
app = command_group()


@app.command(epilog=example("langevin pool runs/my"))
def pool(folder: Folder, quiet: Quiet = False, as_json: Json = False) -> None:
    """Learn what joins the samples of a finished run, and weigh all by validation.

    Of a text that is n-gram counts, of a classifier linear parts. What was there before is made
    anew. Counts and n-grams lie in the run folder and contain words of the text; whatever asks the
    run from then on asks all members.
    """
    run = RunFolder(folder)
    record: MembersRecord | PoolRecord
    with Bars(quiet or as_json) as progress:
        if run.recipe.task == "classify":
            record = add_linear_members(run, progress, anew=True).record
        else:
            record = add_members(run, progress, anew=True)
    if as_json:
        told = record.to_dict()
        print(json.dumps({key: told[key] for key in TOLD if key in told}))
        return
    rows = [("average of the samples", f"{record.nll[NETWORK]:.4f}"), *members_rows(record)]
    screen.print(table(f"{folder}: validation nll", ("model", "nll (nats)"), rows))
    say_next(folder, "evaluate")
