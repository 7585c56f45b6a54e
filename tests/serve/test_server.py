"""Tokens, many clients at once, clients that go away, garbage, and a clean end."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from langevin.errors import LangevinError
from langevin.serve.server import Address, read_token, safe_name
from tests.serve.running import Client, served

TOKEN = "0123456789abcdef0123"


def test_only_who_has_the_token_is_answered(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    options = ("--token-file", str(tmp_path / "token"))
    with served("bytes", cwd=folders, options=options) as (client, _):
        assert client.get("/healthz")[0] == 200
        assert client.ask("GET", "/v1/models")[0] == 401
        assert client.ask("GET", "/v1/models", Authorization=f"Bearer {TOKEN}x")[0] == 401
        assert client.ask("GET", "/v1/models", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_many_at_once_get_what_each_alone_would(client: Client) -> None:
    texts = [f"who was number {number} ?" for number in range(24)]
    path = "/v1/models/questions/classify"
    alone = [client.post(path, {"text": text})[1]["answers"][0] for text in texts]
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda text: client.post(path, {"text": text}), texts))
    for (status, answer), expected in zip(found, alone, strict=True):
        assert status == 200
        assert answer["answers"][0]["label"] == expected["label"]
        assert answer["answers"][0]["p"] == pytest.approx(expected["p"], abs=1e-6)


def test_texts_that_are_written_side_by_side_are_those_of_each_alone(client: Client) -> None:
    def write(seed: int) -> bytes:
        body = json.dumps({"prompt": "The ", "length": 40, "seed": seed}).encode()
        path = "/v1/models/bytes/generate"
        return client.ask("POST", path, body, Content_Type="application/json")[2]

    alone = [write(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(write, range(6))) == alone


def test_who_goes_away_in_the_middle_harms_nobody(client: Client) -> None:
    body = json.dumps({"prompt": "The ", "length": 2000}).encode()
    head = (
        f"POST /v1/models/bytes/generate HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(head + body)
            assert connection.recv(64)
    with socket.create_connection(("127.0.0.1", client.port)) as slow:
        slow.sendall(head[:40])
        assert client.get("/healthz")[0] == 200


def test_garbage_is_never_a_failure_of_ours(client: Client) -> None:
    dice = random.Random(0)
    paths = ["bytes/score", "bytes/next", "questions/classify", "captions/caption", "bytes/generate"]

    def value(depth: int = 0) -> object:
        kinds = [
            lambda: dice.choice(["", "a", "\0", "ü" * 50, "<script>", None, True, -1, 1e308, 2**70]),
            lambda: [value(depth + 1) for _ in range(dice.randrange(4))] if depth < 3 else 0,
            lambda: {dice.choice(["text", "texts", "features", "top", "x"]): value(depth + 1)}
            if depth < 3 else 0,
        ]
        return dice.choice(kinds)()

    for _ in range(150):
        made = {dice.choice(["text", "texts", "prompt", "features", "beam", "alpha", "length"]):
                value() for _ in range(3)}  # fmt: skip
        made = {key: (3 if key == "length" else own) for key, own in made.items()}
        body = json.dumps(made).encode()
        if dice.random() < 0.3:
            body = bytes(dice.randrange(256) for _ in range(dice.randrange(60)))
        path = f"/v1/models/{dice.choice(paths)}"
        status, _, content = client.ask("POST", path, body, Content_Type="application/json")
        assert status < 500 or status == 503, (path, body, content)


def test_it_ends_cleanly_and_answers_what_is_under_way(folders: Path) -> None:
    with served("bytes", cwd=folders) as (client, process):
        body = json.dumps({"prompt": "The ", "length": 300}).encode()
        found: list[tuple[int, bytes]] = []

        def write() -> None:
            path = "/v1/models/bytes/generate"
            status, _, content = client.ask("POST", path, body, Content_Type="application/json")
            found.append((status, content))

        writer = threading.Thread(target=write)
        writer.start()
        while b'generate",' not in client.ask("GET", "/metrics")[2] and writer.is_alive():
            break
        process.send_signal(signal.SIGTERM)
        writer.join(60)
        assert process.wait(60) in (0, -signal.SIGTERM)
        assert not found or found[0][0] == 200


def refused(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "langevin", "serve", *arguments]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_what_cannot_be_served_is_refused(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("abc")
    assert "found nothing there" in refused("absent", cwd=folders)
    assert "at least 16" in refused("bytes", "--token-file", str(tmp_path / "short"), cwd=folders)
    assert "different names" in refused("bytes", "data/../bytes", cwd=folders)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "--port" in refused("bytes", "--port", port, cwd=folders)


def test_tokens_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANGEVIN_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("LANGEVIN_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    monkeypatch.setenv("LANGEVIN_TOKEN", "with a space in it")
    with pytest.raises(LangevinError, match="printable ASCII signs in the variable"):
        read_token(None)


def test_who_is_on_loopback_is_asked_by_its_own_names_only() -> None:
    assert Address().hosts == {"localhost", "127.0.0.1", "[::1]"}
    assert Address("0.0.0.0").hosts is None
    assert not Address("example.org").is_loopback
    assert safe_name("a b/ü<script>") == "a-b-script-"
