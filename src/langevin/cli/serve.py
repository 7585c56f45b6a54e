"""The command that answers over HTTP: serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..errors import LangevinError
from ..posterior.selection import Selection
from ..process import available_cores
from ..report.progress import Bars
from ..report.terminal import messages, screen
from .app import command_group, example

app = command_group()
EXTRACTOR = ("makes features of pictures that are sent: ResNet-50 weights, or a network of "
             "transformers by folder or name (default: that of the training)")


@app.command(epilog=example("langevin serve runs/my runs/mine --port 8000"))
def serve(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="runs, chains or exported folders")
    ],
    host: Annotated[str, typer.Option(help="where to listen")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    samples: Annotated[
        int | None, typer.Option(min=1, help="how many samples (default: as evaluate)")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="a file with the token that clients must send")
    ] = None,
    extractor: Annotated[
        str | None, typer.Option(help=EXTRACTOR)
    ] = None,
    preprocess: Annotated[str | None, typer.Option(help="caffe or torchvision")] = None,
) -> None:
    """Answer over HTTP, documented at /api, with a page at / to play with."""
    try:
        from ..serve.server import Address, Service, read_token
    except ModuleNotFoundError as missing:
        raise LangevinError(
            f"serving needs {missing.name}, which is not installed; "
            f"pip install 'langevin[serve]'"
        ) from None
    address = Address(host, port, read_token(token_file))
    service = Service()
    with Bars() as progress:
        service.load(folders, Selection(samples=samples), progress)
        if extractor is not None:
            service.add_extractor(extractor, preprocess)
    for name, served in service.models.items():
        size = served.posterior.bytes / 1e6
        screen.print(Text(f"{name}: {served.posterior!r}, {size:.1f} MB"), soft_wrap=True)
    if not address.is_loopback and address.token is None:
        messages.print(
            f"anybody who reaches {host} may ask; name a --token-file to change that",
            style="yellow",
        )
    shown = f"[{host}]" if ":" in host else host
    screen.print(
        Text(f"http://{shown}:{port}  page, /api how to ask, /metrics; "
             f"{available_cores()} cores; Ctrl-C stops")
    )
    service.run(address)
