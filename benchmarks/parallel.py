"""One chain trained by two processes: its curve, the price of a kill, and its speed.

python -m benchmarks.parallel curves|kills|speed [--only NAME] [--epochs 1] [--json
results/parallel.json]

Each writes its own part of the record; what is in it is not measured again. Speed is a ratio within
one run: the same two processes take turns with the first of them alone on two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langevin.files import write_atomic
from langevin.store.folder import RunFolder
from langevin.store.manifest import commit, processor_name

KILLS, LONGEST = 20, 10.0
"""How often, and how many seconds after the processes were started at most; in the first of them
there is nothing yet."""
WORKER = Path(__file__).with_name("parallel_worker.py")
EPOCH = ("burn_in=0", "burn_in_temperature=none", "checkpoint_minutes=0.5", "threads=1", "patience=none")
RECORDS = 4
CURVES = {
    "ptb-small-successive-sgld": ("lr=1.0",),
    "trec-psgld": (),
}
"""With one change: a rate that the first epoch of SGLD stands without its schedule."""
SHAPES = {
    "Penn Treebank, small: 20×20 words": ("ptb-small-successive-sgld", ()),
    "the same, 80×35 words": ("ptb-small-successive-sgld", ("batch_size=80", "window=35")),
    "TREC: 50 questions": ("trec-psgld", ()),
    "War and Peace, bytes: 50×50, LSTM of 512": (
        "text", ("corpus=war_and_peace", "batch_size=50", "window=50", "hidden=512")),
}
NIGHT = ("level=byte", "by_size=false", "hidden=32", "layers=2", "dropout=0.2", "batch_size=10", "window=25",
         "epochs=8", "burn_in=1", "sample_every=0.5", "checkpoint_minutes=0.003", "lr_schedule=constant",
         "patience=none", "temperature=0.1", "prior_var=1.0", "sample=last", "threads=1")
TEXT = "The night was dark and still; nobody spoke. Bells rang far away, and {} geese flew over the roofs.\n"


def torchrun(*arguments: object, restarts: int = 0) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            f"--max-restarts={restarts}", *map(str, arguments)]


def settings(overrides: tuple[str, ...]) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


def curves(record: dict[str, Any], only: str, epochs: float) -> None:
    """An epoch by one process and by two: how far losses and validation are apart, relative to
    themselves."""
    length = (f"epochs={epochs}", f"sample_every={epochs / RECORDS}")
    for recipe, overrides in CURVES.items():
        if recipe in record or only not in recipe:
            continue
        with tempfile.TemporaryDirectory() as folder:
            one, two = Path(folder) / "one", Path(folder) / "two"
            tail = ["train", recipe, "--quiet", *settings((*EPOCH, *length, *overrides))]
            subprocess.run([sys.executable, "-m", "langevin", *tail, "--out", one], check=True)
            subprocess.run(torchrun("-m", "langevin", *tail, "--out", two), check=True)
            record[recipe] = {"epochs": epochs} | compare(RunFolder(one), RunFolder(two))


def compare(one: RunFolder, two: RunFolder) -> dict[str, Any]:
    ours, theirs = one.progress(), two.progress()
    assert ours is not None
    assert theirs is not None
    pairs = list(zip(ours.history, theirs.history, strict=True))
    return {
        "steps": ours.step,
        "train_loss": [line.train_loss for line in ours.history],
        "valid_nll": [line.valid["nll"] for line in ours.history],
        "train_loss_apart": max(abs(b.train_loss / a.train_loss - 1) for a, b in pairs),
        "valid_nll_apart": max(abs(b.valid["nll"] / a.valid["nll"] - 1) for a, b in pairs),
        "seconds": [ours.seconds, theirs.seconds],
    }


def kills(record: dict[str, Any], only: str, epochs: float) -> None:
    """A process killed at random, so many times; the run must end with the bits of one that was
    left alone."""
    source = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "night.txt"
        text.write_text("".join(TEXT.format(source.randint(2, 10**6)) for _ in range(400)))
        tail = ["train", "--text", text, "--quiet", *settings(NIGHT)]
        whole, runs = Path(folder) / "whole", record.setdefault("runs", [])
        subprocess.run(torchrun("-m", "langevin", *tail, "--out", whole), check=True, stdout=subprocess.DEVNULL)
        while (left := KILLS - sum(len(run["killed"]) for run in runs)) > 0:
            cut = Path(folder) / f"cut-{len(runs)}"
            command = torchrun("-m", "langevin", *tail, "--out", cut, restarts=left)
            launcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            killed = kill_at_random(launcher, cut, source, left)
            code = launcher.wait()
            runs.append({"killed": killed, "exit_code": code, "same_bits": bits(whole) == bits(cut)})


def kill_at_random(
    launcher: subprocess.Popen[bytes], folder: Path, source: random.Random, most: int
) -> list[dict[str, int]]:
    """Either of two processes, some time after both are there; most often while they train."""
    killed: list[dict[str, int]] = []
    while len(killed) < most and launcher.poll() is None:
        children = children_of(launcher.pid)
        if len(children) < 2:
            time.sleep(0.05)
            continue
        time.sleep(source.uniform(0, LONGEST))
        number = source.randrange(2)
        step = step_of(folder)
        if children == children_of(launcher.pid):
            os.kill(children[number], signal.SIGKILL)
            killed.append({"process": number, "step": step})
            while children_of(launcher.pid) == children:
                time.sleep(0.05)
    return killed


def children_of(parent: int) -> list[int]:
    """Those that compute, by number."""
    found = subprocess.run(["pgrep", "-P", str(parent), "-f", "langevin"], capture_output=True, text=True, check=False)
    return sorted(map(int, found.stdout.split()))


def step_of(folder: Path) -> int:
    """Of the last checkpoint; −1 before there is a run."""
    if not (folder / "recipe.toml").exists():
        return -1
    progress = RunFolder(folder).progress()
    return progress.step if progress else 0


def bits(folder: Path) -> str:
    """Samples, curve and last state."""
    run = RunFolder(folder)
    loaded = run.load_checkpoint()
    assert loaded is not None
    tensors, progress = loaded
    samples, lines = [sample.sha256 for sample in run.store().samples], progress.lines()
    return json.dumps([samples, lines, {name: tensor.tolist() for name, tensor in tensors.items()}])


def speed(record: dict[str, Any], only: str, epochs: float) -> None:
    """Two processes × one thread against one × two threads; the parts of a step; all-reduce
    alone."""
    for name, (recipe, overrides) in SHAPES.items():
        if name in record or only not in name:
            continue
        ran = subprocess.run(torchrun(WORKER, recipe, *overrides), check=True, stdout=subprocess.PIPE, text=True)
        record[name] = json.loads(ran.stdout.splitlines()[-1])


PARTS: dict[str, Callable[[dict[str, Any], str, float], None]] = {"curves": curves, "kills": kills, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--json", type=Path, default=Path("results/parallel.json"))
    parser.add_argument("--only", default="", help="recipes or shapes whose names have this")
    parser.add_argument("--epochs", type=float, default=1.0, help="of the curves")
    options = parser.parse_args()
    own = read(options.json).get(options.part, {})
    PARTS[options.part](own, options.only, options.epochs)
    where = {"commit": commit(), "processor": processor_name(), "cores": os.cpu_count()}
    record = read(options.json) | {options.part: own} | where
    write_atomic(options.json, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    print(json.dumps(own, indent=1, ensure_ascii=False))


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


if __name__ == "__main__":
    main()
