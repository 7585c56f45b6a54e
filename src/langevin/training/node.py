"""What is asked of a node of a cluster before work goes there.

It is sent as it stands, as the node may have another langevin or none: Python's library alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

VERSIONS = """
import hashlib, importlib.metadata as metadata, json
from importlib.util import find_spec
from pathlib import Path

def version(name):
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "none"

spec = find_spec("langevin")
files = sorted(Path(spec.origin).parent.rglob("*.py")) if spec and spec.origin else []
source = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
print(json.dumps({"langevin": version("langevin"), "torch": version("torch"), "source": source}))
"""
"""A program, as a process of ours would find the packages; it imports none of them."""


def versions_here() -> dict[str, str]:
    """Of langevin and torch, and a checksum of langevin's source, where this runs."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", VERSIONS], capture_output=True, text=True, timeout=60
    )
    if done.returncode:
        return {"langevin": f"none that works ({done.stderr.strip().splitlines()[-1]})"}
    found: dict[str, str] = json.loads(done.stdout)
    return found


def sight(folder: str, name: str) -> str:
    """What is seen of a file of this name in a folder: its content, or why there is none."""
    if not Path(folder).is_dir():
        return "no such folder"
    try:
        return (Path(folder) / name).read_text()
    except FileNotFoundError:
        return "another folder of that name"
    except OSError as error:
        return f"a folder that cannot be read ({error.strerror})"


def describe_node(sights: list[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    """The versions there, and what is seen of each file, as folder and name."""
    return versions_here(), [sight(folder, name) for folder, name in sights]
