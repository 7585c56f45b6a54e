"""How long the command takes to answer, as ratios to `import torch`: python -m benchmarks.start.

Each round starts every process once, so that what else the machine does meets all of them alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

CONTENDERS = {
    "import torch": ["-c", "import torch"],
    "import langevin": ["-c", "import langevin"],
    "langevin --version": ["-m", "langevin", "--version"],
    "langevin --help": ["-m", "langevin", "--help"],
    "langevin": ["-m", "langevin"],
}
LIMIT = 1 / 3
"""Of the time of `import torch`, for every other one."""


def seconds(arguments: list[str]) -> float:
    """The wall time of one process, from its start to its end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(rounds: int) -> dict[str, object]:
    """Medians of the ratios within a round; the first round, which fills the caches, is left
    out."""
    turns = [{name: seconds(told) for name, told in CONTENDERS.items()} for _ in range(rounds + 1)]
    ratios = {
        name: statistics.median(turn[name] / turn["import torch"] for turn in turns[1:])
        for name in CONTENDERS
    }
    return {
        "rounds": rounds,
        "cores": os.cpu_count(),
        "seconds": {name: statistics.median(t[name] for t in turns[1:]) for name in CONTENDERS},
        "ratios": ratios,
        "limit": LIMIT,
        "within": max(ratio for name, ratio in ratios.items() if name != "import torch") <= LIMIT,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, default=Path("results/bench-start.json"))
    options = parser.parse_args()
    result = measure(options.rounds)
    text = json.dumps(result, indent=1)
    options.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
