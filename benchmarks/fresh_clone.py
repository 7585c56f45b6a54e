"""The README's commands as a newcomer gives them: in a fresh clone, with an empty home, timed.

    python -m benchmarks.fresh_clone            # make demo
    python -m benchmarks.fresh_clone demo test  # make test too

Writes docs/demo.txt, what was printed with how long it took; docs/surprise.svg, the picture of the
README; and, where there is a Chromium, docs/demo.png, a photograph of the page.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LEFT_OUT = ("LANGEVIN_DATA", "PYTHONPATH", "OMP_NUM_THREADS", "VIRTUAL_ENV", "MAKEFLAGS")
"""Of the environment; pip's own settings stay, as they say where packages come from."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = "1100,2500"


def main(targets: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clone, home = Path(folder) / "langevin", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        told = [run(target, clone, home).replace(f"{clone}/", "") for target in targets]
        (DOCS / "demo.txt").write_text("\n".join(told), "utf-8")
        shutil.copy(clone / "runs" / "demo" / "surprise.svg", DOCS / "surprise.svg")
        photograph(clone / "runs" / "demo" / "demo.html", DOCS / "demo.png", home)


def run(target: str, clone: Path, home: Path) -> str:
    """What one command printed, and how long it took; what came before the work apart."""
    known = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    started, lines, begun = time.monotonic(), list[str](), 0.0
    done = subprocess.Popen(["make", target], cwd=clone, env=known | {"HOME": str(home)},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    assert done.stdout is not None
    for line in done.stdout:
        print(line, end="", flush=True)
        if not begun and "training on" in line:
            begun = time.monotonic() - started
        lines.append(line)
    whole = time.monotonic() - started
    if done.wait():
        sys.exit(f"make {target} failed")
    times = f"{begun:.0f} s of set-up, {whole - begun:.0f} s of work" if begun else f"{whole:.0f} s"
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    times += f", {spent.ru_utime + spent.ru_stime:.0f} s of processor time in all"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (f"$ make {target}\n{''.join(lines)}\n[{times}; {os.cpu_count()} cores, on which other "
            f"work ran: load {load}]\n")  # fmt: skip


def photograph(page: Path, picture: Path, home: Path) -> None:
    """The page as a browser shows it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no chromium here: the page was not photographed")
        return
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={home}", f"--window-size={SIZE}", f"--screenshot={picture}",
         page.as_uri()], check=True, capture_output=True, timeout=120,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:] or ["demo"])
