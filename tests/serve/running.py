"""A real server in a process of its own, and a client over a real socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langevin.serve.server import Address, Service


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Client:
    """Asks; every answer as status, headers and what the body holds."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port, self.token = port, token

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        finally:
            connection.close()

    def post(self, path: str, value: Any) -> tuple[int, Any]:
        body = json.dumps(value).encode()
        status, _, content = self.ask("POST", path, body, Content_Type="application/json")
        return status, json.loads(content)

    def get(self, path: str) -> tuple[int, Any]:
        status, _, content = self.ask("GET", path)
        return status, json.loads(content)


@contextmanager
def served(
    *folders: Path | str, options: tuple[str, ...] = (), cwd: Path | None = None, **environment: str
) -> Iterator[tuple[Client, subprocess.Popen[bytes]]]:
    """A server of these folders until the end of the block; stopped as an operator would."""
    port = free_port()
    command = [sys.executable, "-m", "langevin", "serve", *map(str, folders), "--port", str(port)]
    process = subprocess.Popen(
        [*command, *options], cwd=cwd, env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    client = Client(port)
    try:
        wait_until_ready(client, process)
        yield client, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def wait_until_ready(client: Client, process: subprocess.Popen[bytes] | None = None) -> None:
    """Asks until it answers; a server that ends before says why."""
    while True:
        if process is not None and process.poll() is not None:
            assert process.stdout is not None
            raise AssertionError(process.stdout.read().decode())
        try:
            if client.get("/healthz")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)


@contextmanager
def served_here(service: Service) -> Iterator[int]:
    """The same in a thread of this process, with limits of our own; gives the port."""
    address = Address(port=free_port())
    server, taken = service.server(address), address.take()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([taken])))
    thread.start()
    try:
        wait_until_ready(Client(address.port))
        yield address.port
    finally:
        server.should_exit = True
        thread.join()
        service.worker.close()
