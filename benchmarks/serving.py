"""Many clients against one, and the server against the library: ratios of one run.

    python -m benchmarks.serving CLASSIFIER LANGUAGE_MODEL [--small CLASSIFIER] [--json FILE]

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
from langevin.process import available_cores, prepare_process
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
    before = batches(port, name)
    with ThreadPoolExecutor(CLIENTS) as pool:
        shares = [texts[start::CLIENTS] for start in range(CLIENTS)]
        together = seconds_of(lambda: list(pool.map(lambda own: client(own, "many"), shares)))
    many = sorted(latencies["many"])
    requests, count = (now - then for now, then in zip(batches(port, name), before, strict=True))
    return {
        "one_client_per_second": len(texts) / alone,
        "clients_per_second": len(texts) / together,
        "gain": alone / together,
        "requests_a_batch": requests / count,
        "unloaded_median_seconds": median(latencies["one"]),
        "loaded_p99_seconds": many[int(0.99 * (len(many) - 1))],
        "p99_to_unloaded_median": many[int(0.99 * (len(many) - 1))] / median(latencies["one"]),
    }


def batches(port: int, name: str) -> tuple[float, float]:
    """Requests that were answered in batches, and batches, since the server began."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    total, count = (
        next(float(line.split()[-1]) for line in lines
             if line.startswith(f'langevin_batch_requests_{what}{{queue="{name}/classify"'))
        for what in ("sum", "count")
    )  # fmt: skip
    return total, count


def by_turns(port: int, posterior: Any, name: str, texts: list[str]) -> dict[str, float]:
    """Seconds of a single text, by the server and in this process, one after the other."""
    connection, path = Connection(port), f"/v1/models/{name}/classify"
    served, own = [], []
    for text in texts:
        served.append(seconds_of(lambda t=text: connection.post(path, {"text": t})))  # type: ignore[misc]
        own.append(seconds_of(lambda t=text: posterior.predict([t])))  # type: ignore[misc]
    return {"served_median_seconds": median(served[10:]), "in_process_median_seconds": median(own[10:])}


def in_process(posterior: Any, texts: list[str], sizes: set[int]) -> dict[str, float]:
    """Texts a second by the library, so many at a time."""
    rates = {}
    for size in sorted(sizes):
        blocks = [texts[start : start + size] for start in range(0, len(texts), size)]
        whole = seconds_of(lambda: [posterior.predict(block) for block in blocks])  # noqa: B023
        rates[str(size)] = len(texts) / whole
    return rates


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


def measure(classifier: Path, language_model: Path, small: Path, requests: int) -> dict[str, Any]:
    """Everything that is told, in one run."""
    texts = [f"what is the name of number {number} in the list ?" for number in range(REQUESTS)]
    name = classifier.resolve().name
    with server([classifier, language_model]) as (port, process):
        posterior = langevin.load(classifier)
        single = by_turns(port, posterior, name, texts[:110])
        served = classify(port, name, texts)
        size = max(1, round(served["requests_a_batch"]))
        library = in_process(posterior, texts, {1, size, CLIENTS})
        written = write(port, language_model.resolve().name)
    with server([small]) as (port, process):
        memory = growth(port, process, small.resolve().name, requests)
    unloaded, own = single["served_median_seconds"], single["in_process_median_seconds"]
    return {
        "single_text": single,
        "classify": served,
        "in_process_per_second_by_batch": library,
        "generate": written,
        "memory": memory,
        "bounds": {
            "16 clients to one, at least 4": served["gain"],
            "served to in-process at the same batch size, at least 0.8":
                served["clients_per_second"] / library[str(size)],
            "p99 under load to unloaded median, at most 5": served["p99_to_unloaded_median"],
            "4 texts written at once to one, at least 2.5": written["gain"],
            "unloaded median to 1.5 × in-process + 5 ms, at most 1":
                unloaded / (1.5 * own + 0.005),
            "growth of memory, at most 0.02": memory["growth"],
        },
        "clients": CLIENTS,
        "cores": available_cores(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "load": os.getloadavg()[0],
        "commit": commit(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("classifier", type=Path)
    parser.add_argument("language_model", type=Path)
    parser.add_argument("--requests", type=int, default=10_000, help="for the growth of memory")
    parser.add_argument("--small", type=Path, help="a classifier for that (default: the same)")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    prepare_process()
    small = given.small or given.classifier
    result = measure(given.classifier, given.language_model, small, given.requests)
    print(json.dumps(result, indent=1))
    if given.json:
        write_atomic(given.json, json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
