"""Around every request: who may ask, how much may be sent, and what the browser may do with the
page.

Written as plain ASGI, so that a body that is too large is refused while it comes.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from .limits import Limits
from .metrics import Metrics
from .problems import Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Guard:
    """Wraps the application. What is `open` is answered without a token."""

    def __init__(
        self, app: App, limits: Limits, metrics: Metrics, *, token: str | None,
        hosts: set[str] | None, open: Collection[str],
    ) -> None:  # fmt: skip
        self.app, self.limits, self.metrics = app, limits, metrics
        self.token, self.hosts, self.open = token, hosts, open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, answered = time.perf_counter(), 500, False

        async def watched(message: Message) -> None:
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
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        host = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if self.hosts is not None and host not in self.hosts:
            raise Problem(400, "a request to this server by its own name", f"Host {host[:80]!r}",
                          "use the address that it printed")  # fmt: skip
        if self.token is None or scope["path"] in self.open:
            return
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            raise Problem(401, "the bearer token of this server", "another" if given else "none",
                          "send it as 'Authorization: Bearer …'")  # fmt: skip

    def bounded(self, scope: Scope, receive: Receive) -> Receive:
        """The body, as far as it may go, and as long as it may take."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        most, seen, whole = self.limits.body, 0, False
        until = asyncio.get_running_loop().time() + self.limits.seconds

        def refuse(got: str) -> Problem:
            return Problem(413, f"a body of at most {most:,} bytes", got, "send less at a time")

        if not length.isdigit() or int(length[:20]) > most:
            raise refuse(length.decode("latin-1")[:20])

        async def counted() -> Message:
            nonlocal seen, whole
            if whole:  # what comes now is that the client goes
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise Problem(408, f"the whole body within {self.limits.seconds:g} seconds",
                              f"{seen:,} bytes of it", "send it faster, or less") from None  # fmt: skip
            seen, whole = seen + len(message.get("body", b"")), not message.get("more_body", False)
            if seen > most:
                raise refuse("more")
            return message

        return counted


async def respond(send: Send, problem: Problem) -> None:
    """A problem as JSON."""
    headers = dict(problem.headers or {}) | {"content-length": str(len(problem.body)), "connection": "close"}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status_code, "headers": pairs})
    await send({"type": "http.response.body", "body": problem.body})
