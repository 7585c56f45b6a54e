"""Kill what trains chains on a cluster, at random times, and compare the bits of what comes out.

`python -m tests.training.kills --kills 20 --json results/cluster-kills.json`
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.training.session import start
from tests.conftest import SENTENCE, TINY
from tests.training.test_loop import fingerprint
from tests.training.two_nodes import (
    Nodes,
    kill_worker_of,
    parent_of,
    two_nodes,
    wait_for,
    writer_of,
)

KINDS = ("worker", "process", "node", "driver")
SETTINGS = [*TINY, "epochs=120", "burn_in=20", "sample_every=20", "pool=none"]
CHAINS = 2


class Session:
    """Chains that are begun anew as often as they end, until all kills are done."""

    def __init__(self, folder: Path, nodes: Nodes) -> None:
        self.folder, self.nodes = folder, nodes
        self.text = folder / "night.txt"
        self.text.write_text(SENTENCE * 30)
        self.runs: list[Path] = []
        self.driver = self.begin()

    def begin(self) -> subprocess.Popen[bytes]:
        """The next run."""
        out = self.folder / f"run-{len(self.runs)}"
        self.runs.append(out)
        told = [word for setting in [*SETTINGS, f"seed={10 * len(self.runs)}"] for word in ("--set", setting)]
        return self.command("train", "--text", str(self.text), "--out", str(out), "--chains", str(CHAINS), *told)

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "langevin", *words, "--on", self.nodes.address, "--quiet", "--json"],
            env=os.environ | self.nodes.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def at_work(self) -> list[Path]:
        """Chains that a process below a worker trains now."""
        found = []
        for number in range(CHAINS):
            chain = self.runs[-1] / f"chain-{number}"
            with contextlib.suppress(OSError, ValueError, KeyError):
                if (chain / "checkpoint.safetensors").exists() and parent_of(writer_of(chain)) > 1 \
                        and writer_of(chain) != self.driver.pid:
                    found.append(chain)
        return found

    def wait_for_work(self) -> None:
        """Begins the next run where this one has ended."""
        while True:
            wait_for(lambda: self.driver.poll() is not None or self.at_work(), 300)
            if self.driver.poll() is None:
                return
            assert self.driver.returncode == 0
            self.driver = self.begin()

    def kill(self, kind: str, chance: random.Random) -> None:
        """One of the kinds; what would not come back by itself is put back."""
        victim = chance.choice(self.at_work())
        if kind == "worker":
            kill_worker_of(victim)
        elif kind == "process":
            os.kill(writer_of(victim), signal.SIGKILL)
        elif kind == "node":
            self.nodes.kill_second()
            self.nodes.replace_second()
        else:
            self.driver.kill()
            self.driver.wait()
            self.driver = self.command("resume", str(self.runs[-1]))

    def same_bits(self) -> bool:
        """Of every chain of every run, as that of a plain run of its seed."""
        return all(self.is_plain(chain) for run in self.runs for chain in RunFolder(run).chains)

    def is_plain(self, chain: RunFolder) -> bool:
        alone = self.folder / "plain" / f"{chain.recipe.run.seed}"
        recipe = load_recipe("text", [f"corpus={self.text}", *SETTINGS, f"seed={chain.recipe.run.seed}"])
        start(recipe, alone).run()
        return bool(fingerprint(chain.path) == fingerprint(alone))


def kill_at_random(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """So many kills, one after another, of every kind; then what came out."""
    chance, done = random.Random(seed), collections.Counter[str]()
    with two_nodes() as nodes:
        session = Session(folder, nodes)
        while sum(done.values()) < kills:
            session.wait_for_work()
            time.sleep(chance.uniform(0, 1.5))
            kind = KINDS[sum(done.values()) % len(KINDS)]
            with contextlib.suppress(ProcessLookupError, IndexError):  # it ended in this moment
                session.kill(kind, chance)
                done[kind] += 1
        code = session.driver.wait(600)
    return {"kills": dict(done), "runs": len(session.runs), "chains": CHAINS * len(session.runs),
            "last_exit_code": code, "same_bits": code == 0 and session.same_bits()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        result = kill_at_random(Path(temporary), asked.kills, asked.seed)
    print(json.dumps(result))
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1))
    sys.exit(0 if result["same_bits"] else 1)
