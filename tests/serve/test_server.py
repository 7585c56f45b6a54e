"""Tokens, many clients at once, clients that go away, garbage, and a clean end."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path

import pytest

import langevin.serve.connection as connection_module
from langevin.errors import LangevinError
from langevin.posterior.selection import Selection
from langevin.serve.limits import Limits
from langevin.serve.server import Address, Service, read_token, safe_name
from tests.serve.running import Client, served, served_here

TOKEN = "0123456789abcdef0123"


def test_only_who_has_the_token_is_answered(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    options = ("--token-file", str(tmp_path / "token"))
    with served("bytes", cwd=folders, options=options) as (client, _):
        assert client.get("/healthz")[0] == 200
        assert client.ask("GET", "/")[0] == 200  # the page, which asks for the token
        for path in ("/v1/models", "/metrics", "/v1/models/bytes/score"):
            status, headers, content = client.ask("GET", path)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert set(json.loads(content)["error"]) == {"expected", "got", "do"}
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


def head_of(path: str, body: bytes) -> bytes:
    return (f"POST /v1/models/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode()  # fmt: skip


def written(client: Client, name: str = "bytes/generate") -> float:
    """Tokens that were written so far, as the metrics tell."""
    lines = client.ask("GET", "/metrics")[2].decode().splitlines()
    found = [line for line in lines if line.startswith(f'langevin_batch_requests_sum{{queue="{name}"')]
    return float(found[0].split()[-1]) if found else 0.0


def test_nothing_is_written_for_who_has_gone(client: Client) -> None:
    body = json.dumps({"prompt": "The ", "length": 2000}).encode()
    before = written(client)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(head_of("bytes/generate", body) + body)
            assert connection.recv(64)
    while written(client) < (last := written(client)) or last == before:
        time.sleep(0.05)
    time.sleep(0.2)
    rest = written(client)
    time.sleep(0.2)
    assert written(client) == rest < before + 3 * 2000


def test_slow_clients_keep_nobody_waiting(client: Client) -> None:
    body = b'{"text": "abc"}'
    head = head_of("bytes/score", body)
    slow = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(50)]
    for number, connection in enumerate(slow):
        connection.sendall((head + body)[: 20 + number])
    assert client.get("/healthz")[0] == 200
    assert client.post("/v1/models/bytes/score", {"text": "abc"})[0] == 200
    slow[0].sendall((head + body)[20:])
    assert slow[0].recv(15).startswith(b"HTTP/1.1 200")
    for connection in slow:
        connection.close()


def test_who_never_comes_to_the_point_is_hung_up_on(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a head, half a body, and words that are no HTTP."""
    monkeypatch.setattr(connection_module, "SLOWEST", 0.3)
    with chdir(folders):
        service = Service(Limits(seconds=0.3))
        service.load([Path("bytes")], Selection())
    head = head_of("bytes/score", b"{}")
    with served_here(service) as port:
        for sent, answer in ((head[:30], b""), (head + b"{", b"HTTP/1.1 408"),
                             (b"hello\r\n\r\n", b"HTTP/1.1 400")):  # fmt: skip
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(sent)
                found = connection.recv(4096)
                assert found.startswith(answer)
                assert bool(found) == bool(answer)
                while found:
                    found = connection.recv(4096)


def test_a_full_queue_says_when_to_come_back(folders: Path) -> None:
    with chdir(folders):
        service = Service(Limits(waiting=1))
        service.load([Path("bytes")], Selection())
    with served_here(service) as port, ThreadPoolExecutor(24) as pool:
        client = Client(port)
        body = json.dumps({"text": "abc" * 2000}).encode()

        def ask(_: int) -> tuple[int, str | None]:
            path = "/v1/models/bytes/score"
            status, headers, _ = client.ask("POST", path, body, Content_Type="application/json")
            return status, headers.get("retry-after")

        found = set(pool.map(ask, range(24)))
    assert found == {(200, None), (503, "1")}


def garbage(dice: random.Random) -> tuple[str, str, bytes, str]:
    """Something that somebody might send."""
    keys = ["text", "texts", "prompt", "features", "beam", "alpha", "length", "top", "seed", "draws",
            "\ud800", "softmax_temperature", "sample", "tokens", "adapt", "per_sample", "x"]  # fmt: skip
    plain = ["", "a", "\0", "ü" * 50, "<script>", "\ud83d", None, True, -1, 0, 3, 1e308, 2**70, 0.5,
             float("nan"), float("-inf"), "../../etc/passwd", "who is he ?", "\U0001f600\u202e"]  # fmt: skip

    def value(depth: int = 0) -> object:
        kind = dice.randrange(6) if depth < 3 else 0
        if kind == 4:
            return [value(depth + 1) for _ in range(dice.randrange(7))]
        return {dice.choice(keys): value(depth + 1)} if kind == 5 else dice.choice(plain)

    made = {dice.choice(keys): value() for _ in range(dice.randrange(4))}
    if isinstance(made.get("length"), int):
        made["length"] = 3  # else it writes for long
    body = json.dumps(made).encode()
    if dice.random() < 0.3:
        body = bytes(dice.randrange(256) for _ in range(dice.randrange(60)))
    elif dice.random() < 0.2:
        body = body[: dice.randrange(len(body) + 1)]
    names = ["bytes", "counted", "words-shared", "questions", "joined", "captions", "absent", "%ED%A0%80"]
    path = f"/v1/models/{dice.choice(names)}/{dice.choice(PATHS)}"
    kind = dice.choice(["application/json"] * 6 + ["text/plain", "image/png", "image/jpeg", "\xff"])
    return dice.choice(["POST"] * 8 + ["GET", "PUT"]), path, body, kind


PATHS = ("score", "next", "classify", "caption", "generate", "decisions", "caption?beam=2&top=x", "..")


def send_garbage(client: Client, count: int, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(count):
        method, path, body, kind = garbage(dice)
        status, _, content = client.ask(method, path, body, Content_Type=kind)
        assert status < 500 or status == 503, (path, body, content)
        assert b"failure of the server" not in content, (path, body, content)
        assert b"Traceback" not in content
        assert b"/fixtures" not in content


def test_garbage_is_never_a_failure_of_ours(client: Client) -> None:
    send_garbage(client, 300, seed=0)
    assert client.get("/healthz")[0] == 200


@pytest.mark.slow
def test_ten_thousand_pieces_of_garbage_leave_nothing_behind(folders: Path) -> None:
    names = ("bytes", "counted", "words-shared", "questions", "joined", "captions")
    with served(*names, cwd=folders) as (client, process):
        send_garbage(client, 1000, seed=1)
        files = Path(f"/proc/{process.pid}/fd")
        before, opened = memory_of(client), len(list(files.iterdir()))
        send_garbage(client, 9000, seed=2)
        assert memory_of(client) < 1.05 * before
        assert len(list(files.iterdir())) <= opened + 2


def memory_of(client: Client) -> float:
    lines = client.ask("GET", "/metrics")[2].decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("process_resident")))


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_and_answers_what_is_under_way(folders: Path, asked: signal.Signals) -> None:
    with served("bytes", cwd=folders) as (client, process):
        body = json.dumps({"prompt": "The ", "length": 1500}).encode()
        with socket.create_connection(("127.0.0.1", client.port), timeout=60) as connection:
            connection.sendall(head_of("bytes/generate", body) + body)
            content = connection.recv(1 << 16)
            process.send_signal(asked)
            while more := connection.recv(1 << 16):
                content += more
        assert content.startswith(b"HTTP/1.1 200")
        assert content.count(b'data: {"text"') == 1501
        assert b'"done": true' in content
        assert process.wait(60) == 0
        assert process.stdout is not None
        assert b"Traceback" not in process.stdout.read()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", client.port))


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
