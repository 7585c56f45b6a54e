"""Many clients against one, and the server against the library in the same process: ratios of one run.

    python -m benchmarks.serving CLASSIFIER LANGUAGE_MODEL [--json FILE]

The server is a process of its own on loopback. Clients keep their connection open, as clients do.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import langevin
from langevin.files import write_atomic
from langevin.process import prepare_process
from langevin.store.manifest import commit

CLIENTS, REQUESTS, WRITERS, TOKENS = 16, 400, 4, 200


class Connection:
    """One client."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, path: str, value: Any) -> bytes:
        headers = {"Content-Type": "application/json"}
        self.connection.request("POST", path, json.dumps(value), headers)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content


@contextmanager
def server(folders: list[Path]) -> Iterator[tuple[int, int]]:
    """Its port and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "langevin", "serve", *map(str, folders), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def classify(port: int, name: str, texts: list[str]) -> dict[str, float]:
    """Requests a second of one client and of CLIENTS, and how long single ones take."""
    path, latencies = f"/v1/models/{name}/classify", dict[str, list[float]](one=[], many=[])

    def client(own: list[str], kind: str) -> None:
        connection = Connection(port)
        for text in own:
            spent = seconds_of(lambda t=text: connection.post(path, {"text": t}))  # type: ignore[misc]
            latencies[kind].append(spent)

    client(texts[:20], "one")
    latencies["one"].clear()
    alone = seconds_of(lambda: client(texts, "one"))
    with ThreadPoolExecutor(CLIENTS) as pool:
        shares = [texts[start::CLIENTS] for start in range(CLIENTS)]
        together = seconds_of(lambda: list(pool.map(lambda own: client(own, "many"), shares)))
    many = sorted(latencies["many"])
    return {
        "one_client_per_second": len(texts) / alone,
        "clients_per_second": len(texts) / together,
        "gain": alone / together,
        "unloaded_median_seconds": median(latencies["one"]),
        "loaded_p99_seconds": many[int(0.99 * (len(many) - 1))],
        "p99_to_unloaded_median": many[int(0.99 * (len(many) - 1))] / median(latencies["one"]),
    }


def in_process(folder: Path, texts: list[str]) -> dict[str, float]:
    """The same by the library: one text at a time, and CLIENTS at a time."""
    posterior = langevin.load(folder)
    posterior.predict(texts[:CLIENTS])
    single = [seconds_of(lambda t=text: posterior.predict([t])) for text in texts[:100]]  # type: ignore[misc]
    blocks = [texts[start : start + CLIENTS] for start in range(0, len(texts), CLIENTS)]
    whole = seconds_of(lambda: [posterior.predict(block) for block in blocks])
    return {"single_seconds": median(single), "batched_per_second": len(texts) / whole}


def write(port: int, name: str) -> dict[str, float]:
    """Tokens a second of one text, and of WRITERS at once."""
    path = f"/v1/models/{name}/generate"

    def text(seed: int) -> bytes:
        asked = {"prompt": "The ", "length": TOKENS, "seed": seed}
        return Connection(port).post(path, asked)

    text(0)
    alone = seconds_of(lambda: text(1))
    with ThreadPoolExecutor(WRITERS) as pool:
        together = seconds_of(lambda: list(pool.map(text, range(WRITERS))))
    return {
        "one_tokens_per_second": TOKENS / alone,
        "writers_tokens_per_second": WRITERS * TOKENS / together,
        "gain": WRITERS * alone / together,
    }


def resident(process: int) -> int:
    """Bytes of memory of a process."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def growth(port: int, process: int, name: str, requests: int) -> dict[str, float]:
    """Memory after 100 requests and after many."""
    connection, path = Connection(port), f"/v1/models/{name}/classify"
    sizes = []
    for number in range(requests):
        if number in (100, requests - 1):
            sizes.append(resident(process))
        connection.post(path, {"text": f"what is number {number} ?"})
    return {"requests": requests, "bytes_after_100": sizes[0], "bytes_after_all": sizes[-1],
            "growth": sizes[-1] / sizes[0] - 1}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("classifier", type=Path)
    parser.add_argument("language_model", type=Path)
    parser.add_argument("--requests", type=int, default=10_000, help="for the growth of memory")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    prepare_process()
    texts = [f"what is the name of number {number} in the list ?" for number in range(REQUESTS)]
    with server([given.classifier, given.language_model]) as (port, process):
        name = given.classifier.resolve().name
        served = classify(port, name, texts)
        written = write(port, given.language_model.resolve().name)
        memory = growth(port, process, name, given.requests)
    library = in_process(given.classifier, texts)
    result = {
        "classify": served,
        "in_process": library,
        "served_to_in_process": served["clients_per_second"] / library["batched_per_second"],
        "unloaded_to_in_process": served["unloaded_median_seconds"] / library["single_seconds"],
        "generate": written,
        "memory": memory,
        "clients": CLIENTS,
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "commit": commit(),
    }
    print(json.dumps(result, indent=1))
    if given.json:
        write_atomic(given.json, json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
