"""Tokens per second of the training loop against a bare PyTorch loop: same network, batches,
clipping and steps.

python -m benchmarks.bare_loop [--rounds 9] [--steps 12] [--json results/bench-loop.json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from langevin.files import write_atomic
from langevin.process import available_cores, prepare_process
from langevin.recipe import load_recipe
from langevin.store.manifest import commit
from langevin.tasks.language_model import LanguageModelTask
from langevin.training.loop import Trainer
from langevin.training.session import start

from .timing import Contender, interleave, ratio, timed

RECIPE = "ptb-small-successive-sgd"
MUST = 0.95


class Bare(nn.Module):
    """The network as one would write it without this project."""

    def __init__(self, vocabulary: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True)
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: Tensor, carry: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        hidden, carry = self.lstm(self.embedding(tokens), carry)
        return self.output(hidden), carry


def bare_loop(task: LanguageModelTask, steps: int) -> Contender:
    """zero_grad, forward, backward, clip, step; the state is carried."""
    recipe = task.recipe
    model = Bare(len(task.vocabulary), recipe.model.hidden, recipe.model.layers)
    optimiser = torch.optim.SGD(model.parameters(), lr=recipe.sampler.lr)
    batches = [task.training.batch(0, index) for index in range(steps)]

    def run() -> None:
        carry = None
        for inputs, targets in batches:
            optimiser.zero_grad()
            logits, after = model(inputs, carry)
            F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.run.clip_norm)
            optimiser.step()
            carry = (after[0].detach(), after[1].detach())

    return Contender("bare loop", timed(run))


def our_loop(trainer: Trainer, steps: int) -> Contender:
    """The trainer's step: schedules, seeds, clipping, the check of the loss; without validation and
    checkpoints."""

    def run() -> None:
        trainer.step = trainer.recorded = 0
        for _ in range(steps):
            trainer._train_one_batch()

    return Contender("langevin", timed(run))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(available_cores())
    prepare_process()
    with tempfile.TemporaryDirectory() as folder:
        trainer = start(load_recipe(RECIPE), Path(folder) / "run")
        task = trainer.task
        assert isinstance(task, LanguageModelTask)
        contenders = [bare_loop(task, options.steps), our_loop(trainer, options.steps)]
        measured = interleave(contenders, rounds=options.rounds, seconds=options.steps * 0.1)
    speed = ratio(measured["bare loop"], measured["langevin"])
    tokens = options.steps * task.training.streams.shape[0] * task.data.window
    result = {
        "recipe": RECIPE, "tokens_per_second": {name: tokens / s["median"] for name, s in measured.items()},
        "speed_of_ours_to_bare": speed, "must": MUST, "rounds": options.rounds, "threads": torch.get_num_threads(),
        "commit": commit(),
    }
    print(json.dumps(result, indent=1))
    if options.json:
        write_atomic(options.json, json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
