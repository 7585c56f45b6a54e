"""Twenty samples at once against a loop over them: `python -m benchmarks.ensembles [--json FILE]
[--quick]`.

The loop has a module for each sample in memory and does the same work: log-probabilities averaged
over the samples, a state carried for each. Turns are interleaved, medians compared. With one thread
the clock is the CPU time of the process, which other work on the machine lengthens little; with
more it is the wall clock. Freed memory is kept for all, as the command line does: whether glibc
gives it back after an output of 16 MB is chance, and costs a fifth of the time.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from langevin import Ensemble, __version__
from langevin.models.language_model import LanguageModel
from langevin.process import prepare_process

SAMPLES, TURN = 20, 0.05
"""Samples in every ensemble; seconds of one turn, at least."""


class Plain(nn.Module):
    """A model of plain torch layers, for which nothing is prepared: it goes through vmap."""

    def __init__(self, vocabulary: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True)
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: Tensor, carry: tuple[Tensor, Tensor] | None = None) -> Any:
        hidden, carry = self.lstm(self.embedding(tokens), carry)
        return self.output(hidden), carry


@dataclass(frozen=True)
class Case:
    """A network, a batch, and how many times faster than the loop it must be."""

    name: str
    vocabulary: int
    hidden: int
    layers: int
    rows: int
    time: int
    at_least: float | None
    cell: str = "lstm"
    plain: bool = False

    def model(self) -> nn.Module:
        if self.plain:
            return Plain(self.vocabulary, self.hidden, self.layers)
        sizes = {"embed": self.hidden, "hidden": self.hidden, "layers": self.layers}
        return LanguageModel(self.vocabulary, cell=self.cell, **sizes)


CASES = (
    Case("War and Peace, a token", 87, 128, 2, 1, 1, 8.0),
    Case("PTB-small, a token", 10_000, 200, 2, 1, 1, 3.5),
    Case("captions, a word of 5 beams", 2539, 512, 1, 5, 1, 1.3),
    Case("War and Peace, a token, GRU", 87, 128, 2, 1, 1, None, cell="gru"),
    Case("War and Peace, a token, RNN", 87, 128, 2, 1, 1, None, cell="rnn"),
    Case("War and Peace, a token, by vmap", 87, 128, 2, 1, 1, None, plain=True),
    Case("War and Peace, 16 tokens of a prompt", 87, 128, 2, 1, 16, 1.0),
    Case("War and Peace, a split of 100 x 100", 87, 128, 2, 100, 100, 1.0),
    Case("PTB-small, a split of 20 x 20", 10_000, 200, 2, 20, 20, 1.0),
    Case("PTB-small, a split of 32 x 20", 10_000, 200, 2, 32, 20, 1.0),
)
LEVEL = 0.97
"""A bound of 1 means no slower; medians of equal work differ by this much from run to run."""


def contenders(case: Case) -> dict[str, Callable[[], object]]:
    """The loop, the ensemble and one sample alone, on the same batch, each from a state that is
    already there."""
    members = [case.model().eval() for _ in range(SAMPLES)]
    ensemble = Ensemble(members[0], members)
    tokens, targets = torch.randint(case.vocabulary, (2, case.rows, case.time))
    carries = [member(tokens)[1] for member in members]
    carry = ensemble(tokens[:, :1])[1]
    whole = case.rows * case.time > 16

    def log_p(logits: Tensor) -> Tensor:
        if whole:
            return -F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
        return torch.log_softmax(logits, -1)

    def loop() -> Tensor:
        log_sum: Tensor | None = None
        for number, member in enumerate(members):
            logits, carries[number] = member(tokens, carries[number])
            piece = log_p(logits)
            log_sum = piece if log_sum is None else torch.logaddexp(log_sum, piece)
        assert log_sum is not None
        return log_sum - math.log(SAMPLES)

    def at_once() -> object:
        if whole:
            return ensemble.score(tokens, targets=targets, carry=carry)
        return ensemble.log_probs(tokens, carry=carry)

    return {"loop": loop, "ensemble": at_once, "one sample": lambda: log_p(members[0](tokens, carries[0])[0])}


@torch.no_grad()
def measure(case: Case, rounds: int, turn: float) -> dict[str, Any]:
    """Milliseconds of each contender and the two ratios, medians over interleaved rounds."""
    torch.manual_seed(0)
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    runs = contenders(case)
    took: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            if not took[name] or took[name][-1] < 1000 * turn:
                run()  # the caches hold another contender's weights
            began, steps = clock(), 0
            while not steps or clock() - began < turn:
                run()
                steps += 1
            if number:  # the first round warms up
                took[name].append((clock() - began) / steps * 1000)
    medians = {name: statistics.median(times) for name, times in took.items()}
    faster = sorted(a / b for a, b in zip(took["loop"], took["ensemble"], strict=True))
    speedup = medians["loop"] / medians["ensemble"]
    bound = case.at_least
    verdict = "told" if bound is None else "met" if speedup >= (LEVEL if bound == 1 else bound) else "missed"
    return {
        "case": case.name, "milliseconds": medians, "loop : ensemble": speedup, "at least": bound, "verdict": verdict,
        "lowest": faster[0], "highest": faster[-1],
        "ensemble : one sample": medians["ensemble"] / medians["one sample"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--case", default="", metavar="WORDS", help="only the cases whose name has these words")
    parser.add_argument("--quick", action="store_true", help="one short round: shows that everything runs")
    options = parser.parse_args()
    threads = prepare_process().threads
    print(f"{SAMPLES} samples, {threads} thread{'s' * (threads > 1)}; how many times faster than the loop", flush=True)
    rows = []
    for case in (case for case in CASES if options.case in case.name):
        row = measure(case, 1 if options.quick else options.rounds, 0.0 if options.quick else TURN)
        rows.append(row)
        bound = "" if row["at least"] is None else f"at least {row['at least']}: {row['verdict']}"
        spread = f"({row['lowest']:.2f} to {row['highest']:.2f})"
        print(
            f"{row['case']:38} {row['loop : ensemble']:6.2f} {spread:18} "
            f"{row['ensemble : one sample']:6.2f} times one sample  {bound}", flush=True,
        )  # fmt: skip
    if options.json:
        about = {"samples": SAMPLES, "threads": threads, "clock": "cpu" if threads == 1 else "wall"}
        versions = {"langevin": __version__, "torch": torch.__version__, "python": platform.python_version()}
        options.json.write_text(json.dumps(about | {"versions": versions, "cases": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
