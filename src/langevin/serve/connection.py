"""Connections: who does not get to the point is hung up on, and nonsense is answered as all
else."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .problems import Problem

SLOWEST = 20.0
"""Seconds in which the head of a request must come; its body has the time of a request."""
NONSENSE = Problem(400, "an HTTP request", "something else", "speak HTTP/1.1")


class Connection(H11Protocol):
    """uvicorn's, which waits for ever for the rest of a head."""

    hang_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget_head()
        super().connection_lost(exc)

    def watch_head(self) -> None:
        """The clock runs from the first byte to the last of a head."""
        if self.conn.their_state is not h11.IDLE:
            self.forget_head()
        elif self.hang_up is None and self.timeout_keep_alive_task is None:
            self.hang_up = self.loop.call_later(SLOWEST, self.transport.close)

    def forget_head(self) -> None:
        if self.hang_up is not None:
            self.hang_up.cancel()
            self.hang_up = None

    def send_400_response(self, msg: str) -> None:
        """In the form of every other refusal."""
        headers = [*(NONSENSE.headers or {}).items(), ("connection", "close")]
        for event in (h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                      h11.Data(data=NONSENSE.body), h11.EndOfMessage()):  # fmt: skip
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
