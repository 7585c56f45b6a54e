"""Load, listen, stop cleanly: requests under way are answered, new ones are not taken."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import torch
import uvicorn

from ..errors import LangevinError
from ..files import read_utf8
from ..posterior.selection import Selection
from ..predict.base import Posterior
from ..predict.captioning import CaptionPosterior
from ..predict.classification import ClassificationPosterior
from ..predict.language import LanguagePosterior
from ..predict.load import open_posterior
from ..process import SILENT, Progress
from .application import application
from .captioning import ServedCaptioner
from .classification import ServedClassifier
from .connection import Connection
from .language import ServedLanguage
from .limits import Limits
from .metrics import Metrics
from .models import Served
from .worker import Worker

KINDS: dict[type[Posterior], type[Served[Any]]] = {
    LanguagePosterior: ServedLanguage,
    ClassificationPosterior: ServedClassifier,
    CaptionPosterior: ServedCaptioner,
}
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
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

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

    def take(self) -> socket.socket:
        """The socket, before anything is loaded. It listens when all is: until then nobody
        enters."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        taken = socket.socket(family)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((self.host, self.port))
        except OSError as error:
            taken.close()
            raise LangevinError(
                f"cannot listen on {self.host}:{self.port}: {error.strerror or error}; "
                f"choose another --host or --port"
            ) from None
        return taken


@dataclass
class Service:
    """Posteriors that are loaded, ready to be served."""

    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)
    models: dict[str, Served[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.worker = Worker(self.limits, self.metrics)

    def load(
        self, folders: Sequence[Path], selection: Selection, progress: Progress = SILENT
    ) -> None:
        """Every folder under its own name, with its samples in memory."""
        names = [safe_name(folder.resolve().name) for folder in folders]
        if twice := [name for name in names if names.count(name) > 1]:
            raise LangevinError(f"expected folders of different names, got {twice[0]} twice; "
                                f"rename one")  # fmt: skip
        threads = torch.get_num_threads()
        for name, folder in zip(names, folders, strict=True):
            posterior = open_posterior(folder, selection)
            torch.set_num_threads(threads)  # a recipe may have asked for as many as training had
            self.models[name] = KINDS[type(posterior)](name, posterior, self.worker, progress)
            self.models[name].cost  # noqa: B018  # measured now

    def add_extractor(self, name: str | None, preprocess: str | None) -> None:
        """What makes features of pictures: for all captioners; those that know theirs refuse
        another."""
        captioners = [one for one in self.models.values() if isinstance(one, ServedCaptioner)]
        if (name or preprocess) and not captioners:
            raise LangevinError(f"expected a captioner beside --extractor {name or preprocess}, got "
                                f"none; leave it out")  # fmt: skip
        for served in captioners:
            served.open_extractor(name, preprocess)

    def server(self, address: Address) -> uvicorn.Server:
        """What listens, not yet running."""
        app = application(
            self.models, self.limits, self.metrics, token=address.token, hosts=address.hosts
        )
        return uvicorn.Server(uvicorn.Config(
            app, http=Connection, ws="none", lifespan="off", log_level="error",
            server_header=False, timeout_keep_alive=15, timeout_graceful_shutdown=PATIENCE,
            h11_max_incomplete_event_size=65536,
        ))  # fmt: skip

    def run(self, address: Address, taken: socket.socket) -> None:
        """Until somebody stops it by SIGINT or SIGTERM, which then has been answered: no
        failure."""
        for asked in (signal.SIGINT, signal.SIGTERM):
            signal.signal(asked, lambda *_: None)  # uvicorn raises it anew when all is done
        with closing(self.worker):
            self.server(address).run(sockets=[taken])


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
