"""Many cases, counted into a file: python -m tests.fuzz --cases 10000 --seed 0.

Stopped, it goes on from where it was, as long as seed and commit are the same.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from langevin.store.manifest import commit
from tests.fuzz.folders import make_folders
from tests.fuzz.law import LAWFUL, UNLAWFUL, Court

EVERY = 200
"""Cases between two writings."""
NAMES = {"crashed": "tracebacks", "wrote": "wrote_outside"}


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--cases", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("results/fuzz.json"))
    asked = options.parse_args()
    asked.out = asked.out.resolve()
    torch.set_num_threads(1)
    place = Path(tempfile.mkdtemp(prefix="langevin-fuzz-"))
    try:
        return judge_all(asked.cases, asked.seed, asked.out, place)
    finally:
        shutil.rmtree(place)


def judge_all(cases: int, seed: int, out: Path, place: Path) -> int:
    """Exit code 1 if the law was broken."""
    make_folders(place / "sound")
    court, tree_of = Court(place / "sound", seed), commit()
    counts, problems, spent = begun(out, seed, tree_of)
    started = time.monotonic()
    for number in range(sum(counts.values()), cases):
        case = court.case(number)
        outcome = court.judge(case)
        counts[outcome.verdict] += 1
        if not outcome.lawful:
            problems.append(f"{case}: {outcome.verdict}")
            print(case, outcome.verdict, outcome.detail, sep="\n", file=sys.stderr)
        if (number + 1) % EVERY == 0 or number + 1 == cases:
            seconds = round(spent + time.monotonic() - started, 1)
            found = {NAMES.get(name, name): counts[name] for name in (*LAWFUL, *UNLAWFUL)}
            content = {"command": f"python -m tests.fuzz --cases {cases} --seed {seed}",
                       "cases": number + 1, **found, "problems": problems, "seed": seed,
                       "commit": tree_of, "seconds": seconds}
            out.write_text(json.dumps(content, indent=1) + "\n")
    return int(bool(problems))


def begun(out: Path, seed: int, tree_of: str | None) -> tuple[Counter[str], list[str], float]:
    """What an earlier run of the same cases on the same commit has counted."""
    content: dict[str, Any] = json.loads(out.read_text()) if out.is_file() else {}
    if (content.get("seed"), content.get("commit")) != (seed, tree_of):
        return Counter(), [], 0.0
    counts = Counter({name: content[NAMES.get(name, name)] for name in (*LAWFUL, *UNLAWFUL)})
    return counts, content["problems"], content["seconds"]


if __name__ == "__main__":
    sys.exit(main())
