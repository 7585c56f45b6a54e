"""Many crashes, counted into a file: python -m tests.crash --cases 1000 --seed 0.

The cases are all faults at all operations of all jobs, shuffled by the seed. Stopped, it goes on
from where it was, as long as seed and commit are the same.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from langevin.store.manifest import commit
from tests.crash.jobs import JOBS
from tests.crash.law import Court, make_place

EVERY = 20
"""Cases between two writings."""


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    options.add_argument("--cases", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("results/crash.json"))
    asked = options.parse_args()
    torch.set_num_threads(1)
    place = Path(tempfile.mkdtemp(prefix="langevin-crash-"))
    try:
        return judge_all(asked.cases, asked.seed, asked.out.resolve(), place)
    finally:
        shutil.rmtree(place)


def judge_all(cases: int, seed: int, out: Path, place: Path) -> int:
    """Exit code 1 if the law was broken."""
    court, tree_of = Court(make_place(place)), commit()
    every = court.all_cases()
    random.Random(seed).shuffle(every)
    content = begun(out, seed, tree_of)
    kinds, jobs = Counter(content["kinds"]), Counter(content["jobs"])
    problems, spent, started = content["problems"], content["seconds"], time.monotonic()
    done = sum(kinds.values())
    for number, case in enumerate(every[done:cases], done + 1):
        problem = court.judge(case)
        kinds[case.kind] += 1
        jobs[JOBS[case.job].name] += 1
        if problem:
            problems.append(f"{case}: {problem.splitlines()[-1]}")
            print(case, problem, sep="\n", file=sys.stderr)
        if number % EVERY == 0 or number == len(every[:cases]):
            out.write_text(json.dumps({
                "command": f"python -m tests.crash --cases {cases} --seed {seed}",
                "cases": number, "lawful": number - len(problems), "problems": problems,
                "kinds": dict(sorted(kinds.items())), "jobs": dict(sorted(jobs.items())),
                "operations": {job.name: count for job, count in
                               zip(JOBS, court.operations, strict=True)},
                "all_cases": len(every), "seed": seed, "commit": tree_of,
                "seconds": round(spent + time.monotonic() - started, 1),
            }, indent=1) + "\n")
    return int(bool(problems))


def begun(out: Path, seed: int, tree_of: str | None) -> dict[str, Any]:
    """What an earlier run of the same cases on the same commit has counted."""
    content: dict[str, Any] = json.loads(out.read_text()) if out.is_file() else {}
    same = (content.get("seed"), content.get("commit")) == (seed, tree_of)
    return content if same else {"kinds": {}, "jobs": {}, "problems": [], "seconds": 0.0}


if __name__ == "__main__":
    sys.exit(main())
