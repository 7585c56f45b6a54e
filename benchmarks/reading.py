"""Memory and time of reading: long texts until the first batch, long tables block by block.

`python -m benchmarks.reading [--megabytes 200] [--out results/bench-reading.json]`. Each case runs
in a process of its own; its memory is the peak above what the process held once torch was imported,
its time that of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from langevin.data.corpora import read_war_and_peace
from langevin.data.tables import read_blocks
from langevin.recipe import load_recipe
from langevin.tasks import open_task

from .startup_effect import peak_megabytes

LEVELS = ("byte", "char", "word")
NEW_WORD = 50
"""One word of so many is a new one, as the words of a long text go on to grow."""


def write_text(path: Path, size: int) -> None:
    """War and Peace again and again, in which every 50th word has the number of its place."""
    words = read_war_and_peace().decode().split(" ")
    written = place = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        while written < size:
            for at in range(0, len(words), NEW_WORD):
                place += 1
                part = " ".join([*words[at : at + NEW_WORD - 1], f"word{place}", ""])
                written += file.write(part)
                if written >= size:
                    break


def write_table(path: Path, rows: int) -> None:
    """Sentences of some ten words with a number and a label."""
    words = read_war_and_peace().decode().split()
    with path.open("w", encoding="utf-8") as file:
        file.write("number,text,label\n")
        for row in range(rows):
            at = row * 11 % (len(words) - 11)
            text = " ".join(words[at : at + 11]).replace('"', "'")
            file.write(f'{row},"{text}",{row % 2}\n')


def read_text(path: Path, level: str) -> dict[str, float]:
    """All that happens to a text before the first step."""
    task = open_task(load_recipe("text", [f"corpus={path}", f"level={level}"]))
    task.training_batch(0, 0)
    return {"tokens": task.num_data, "vocabulary": len(task.vocabulary)}


def read_table(path: Path) -> dict[str, float]:
    return {"rows": sum(len(block.texts) for block in read_blocks(path))}


def work(kind: str, path: Path) -> dict[str, float]:
    """One case, in this process."""
    before, begun = peak_megabytes() or 0.0, time.process_time()
    counts = read_table(path) if kind == "table" else read_text(path, kind)
    seconds, size = time.process_time() - begun, path.stat().st_size
    bytes_used = ((peak_megabytes() or 0.0) - before) * 2**20
    return counts | {
        "bytes": size, "processor_seconds": round(seconds, 2), "memory_bytes": round(bytes_used),
        "memory_per_byte": round(bytes_used / size, 3),
    }


def in_a_process(kind: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.reading", "--work", kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def measure(folder: Path, megabytes: int, rows: Iterable[int]) -> dict[str, dict[str, float]]:
    """Every case by its name."""
    found = {}
    text = folder / "text.txt"
    write_text(text, megabytes * 10**6)
    for level in LEVELS:
        found[f"{megabytes} MB by {level}"] = in_a_process(level, text)
    for count in rows:
        table = folder / f"{count}.csv"
        write_table(table, count)
        found[f"{count} rows of CSV"] = in_a_process("table", table)
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        print(json.dumps(work(options.work[0], Path(options.work[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.megabytes, options.rows)
    for name, numbers in found.items():
        print(f"{name}: {numbers}")
    if options.out:
        content = {"cores": os.cpu_count(), "cases": found}
        options.out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
