"""Load, listen, stop cleanly: requests under way are answered, new ones are not taken."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from ..errors import LangevinError
from ..files import read_utf8
from ..models.extractor import Extractor, open_extractor
from ..posterior.selection import Selection
from ..predict.captioning import CaptionPosterior
from ..predict.load import open_posterior
from ..process import SILENT, Progress
from .application import application
from .limits import Limits
from .metrics import Metrics
from .models import Served
from .worker import Worker

TOKEN = "LANGEVIN_TOKEN"
SHORTEST = 16
PATIENCE = 30
"""Seconds that requests under way may still take when the server is asked to stop."""


@dataclass(frozen=True)
class Address:
    """Where to listen, and who may ask."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def hosts(self) -> set[str] | None:
        """Names by which a loopback server is asked; others come from a page that plays tricks."""
        return {"localhost", "127.0.0.1", "[::1]", self.host} if self.is_loopback else None


@dataclass
class Service:
    """Posteriors that are loaded, ready to be served."""

    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)
    worker: Worker = field(default_factory=Worker)
    models: dict[str, Served] = field(default_factory=dict)
    extractor: Extractor | None = None

    def load(
        self, folders: Sequence[Path], selection: Selection, progress: Progress = SILENT
    ) -> None:
        """Every folder under its own name, with its samples in memory."""
        advance = progress.begin(len(folders), "models")
        for folder in folders:
            name = safe_name(folder.resolve().name)
            if name in self.models:
                raise LangevinError(f"expected folders of different names, got {name} twice; "
                                    f"rename one")  # fmt: skip
            posterior = open_posterior(folder, selection)
            posterior.ensemble  # noqa: B018  # reads the samples now, not at the first request
            self.models[name] = Served(name, posterior, self.worker, self.limits, self.metrics)
            advance()

    def add_extractor(self, name: str, preprocess: str | None) -> None:
        """For all captioners; those that know theirs refuse another."""
        self.extractor = open_extractor(name, preprocess)
        for served in self.models.values():
            if isinstance(served.posterior, CaptionPosterior):
                served.posterior.expect_extractor(self.extractor)

    def run(self, address: Address) -> None:
        """Until somebody stops it."""
        import uvicorn

        app = application(
            self.models, self.limits, self.metrics,
            token=address.token, hosts=address.hosts, extractor=self.extractor,
        )  # fmt: skip
        config = uvicorn.Config(
            app,
            log_level="warning",
            server_header=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=PATIENCE,
            h11_max_incomplete_event_size=65536,
        )
        try:
            uvicorn.Server(config).run(sockets=[listen(address)])
        finally:
            self.worker.close()


def listen(address: Address) -> socket.socket:
    """The socket, taken before anything is said to be served."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=512)
    except OSError as error:
        raise LangevinError(f"cannot listen on {address.host}:{address.port}: {error.strerror}; "
                            f"choose another --host or --port") from None  # fmt: skip


def safe_name(name: str) -> str:
    """What may stand in an address."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name) or "model"


def read_token(file: Path | None) -> str | None:
    """From a file or from the environment, never from the command line, which others can see."""
    source = f"the file {file}" if file else f"the variable {TOKEN}"
    token = read_utf8(file).strip() if file else os.environ.get(TOKEN)
    if token is None:
        return None
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise LangevinError(f"expected a token of at least {SHORTEST} printable ASCII signs in "
                            f"{source}, got {len(token)}; make one by 'openssl rand -hex 32'")  # fmt: skip
    return token
