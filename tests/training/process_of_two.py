"""One of the processes that torchrun starts in tests: a training that something happens to.

torchrun … process_of_two.py RECIPE FOLDER WHAT
"""

import os
import signal
import sys
from pathlib import Path

import torch

from langevin.cli import run
from langevin.cli.app import command_group
from langevin.recipe import load_recipe
from langevin.training.session import start

NUMBER, ATTEMPT = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
app = command_group()


def kill(trainer):
    """The second process at step 20, the first of the next attempt at step 31."""
    if (NUMBER, ATTEMPT, trainer.step) in ((1, 0, 20), (0, 1, 31)):
        os.kill(os.getpid(), signal.SIGKILL)


def nudge(trainer):
    """One weight of the second process becomes another at step 7."""
    if NUMBER == 1 and trainer.step == 7:
        with torch.no_grad():
            trainer.model.output.bias[0] += 1e-6


@app.command()
def train(recipe: Path, folder: Path, what: str) -> None:
    loaded = load_recipe(recipe)
    if what == "lose":  # the text lies where the first process works, and not where the second does
        text = Path(loaded.data.corpus)
        os.chdir(text.parent if NUMBER == 0 else "/")
        loaded = load_recipe(recipe, [f"corpus={text.name}"])
    trainer = start(loaded, folder)
    trainer.run({"kill": kill, "nudge": nudge, "lose": lambda _: None}[what])


sys.argv[0] = "process_of_two"
run(app)
