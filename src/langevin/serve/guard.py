"""Around every request: who may ask, how much may be sent, and what the browser may do with the page.

Written as plain ASGI, so that a body that is too large is refused while it comes.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .limits import Limits
from .metrics import Metrics
from .problems import Problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OPEN = ("/healthz",)
"""Answered without a token."""


class Guard:
    """Wraps the application."""

    def __init__(
        self, app: App, limits: Limits, metrics: Metrics, token: str | None, hosts: set[str] | None
    ) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self.token, self.hosts = token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        answered = False

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], True
                message["headers"] = [
                    *message.get("headers", []),
                    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        try:
            self.refuse_stranger(scope)
            await self.app(scope, self.bounded(scope, receive), watched)
        except Problem as problem:
            if answered:
                raise
            await respond(watched, problem)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "other")  # Starlette puts the route there once found
            self.metrics.request(path, status, time.perf_counter() - started)

    def refuse_stranger(self, scope: Scope) -> None:
        """A name of this server that nobody gave it (DNS rebinding), a token that is not ours."""
        headers = {name.lower(): value for name, value in scope["headers"]}
        host = headers.get(b"host", b"").decode("latin-1").rsplit(":", 1)[0].lower()
        if self.hosts is not None and host not in self.hosts:
            raise Problem(400, "a request to this server by its own name", f"Host {host[:80]!r}",
                          "use the address that it printed")  # fmt: skip
        if self.token is None or scope["path"] in OPEN:
            return
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            got = "another" if given else "none"
            raise Problem(401, "the bearer token of this server", got,
                          "send it as 'Authorization: Bearer …'")  # fmt: skip

    def bounded(self, scope: Scope, receive: Receive) -> Receive:
        """The body, as far as it may go."""
        headers = {name.lower(): value for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0")
        most, seen = self.limits.body, 0

        def refuse(got: str) -> Problem:
            return Problem(413, f"a body of at most {most:,} bytes", got, "send less at a time")

        if not length.isdigit() or int(length) > most:
            raise refuse(length.decode("latin-1")[:20])

        async def counted() -> MutableMapping[str, Any]:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise refuse("more")
            return message

        return counted


async def respond(send: Send, problem: Problem) -> None:
    """A problem as JSON."""
    body = json.dumps(problem.to_dict()).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    pairs = [(name.lower().encode(), value.encode())
             for name, value in (headers | problem.headers).items()]  # fmt: skip
    await send({"type": "http.response.start", "status": problem.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
