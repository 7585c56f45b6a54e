"""The command that answers over HTTP: serve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ..errors import LangevinError
from ..posterior.selection import Selection
from ..process import available_cores, resident_memory
from ..report.progress import Bars
from ..report.terminal import messages, screen
from .app import command_group, example, say_skipped, takes_selection

if TYPE_CHECKING:
    from ..serve.models import Served
    from ..serve.server import Address

app = command_group()
EXTRACTOR = (
    "makes features of pictures that are sent: ResNet-50 weights, or a network of "
    "transformers by folder or name (default: that of the training)"
)


@app.command(epilog=example("langevin serve runs/my runs/mine --port 8000"))
@takes_selection
def serve(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="runs, chains or exported folders")
    ],
    selection: Selection,
    host: Annotated[str, typer.Option(help="where to listen")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="a file with the token that clients must send (or LANGEVIN_TOKEN)"),
    ] = None,
    extractor: Annotated[str | None, typer.Option(help=EXTRACTOR)] = None,
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
    with address.take() as taken:
        with Bars() as progress:
            service.load(folders, selection, progress)
            service.add_extractor(extractor, preprocess)
        for served in service.models.values():
            say_skipped(served.posterior.opened.chosen.skipped)
            screen.print(Text(summary(served)), soft_wrap=True)
        tell_who_may_ask(address)
        held = resident_memory()
        memory = "" if held is None else f"{held / 1e6:,.0f} MB of memory; "
        screen.print(
            Text(
                f"{address.url}  the page; /api how to ask; /metrics; {memory}"
                f"{available_cores()} cores; Ctrl-C stops"
            ),
            soft_wrap=True,
        )
        service.run(address, taken)


def summary(served: Served) -> str:  # type: ignore[type-arg]
    """A model in one line: what it is, and what an answer costs."""
    about = served.about
    cost = f"{1000 * about.cost.seconds:.1f} ms {about.cost.of}, {about.cost.bytes / 1e6:.1f} MB"
    return f"{about.name}: {served.noun}, {about.samples} samples of {about.network} ({about.why}); {cost}"


def tell_who_may_ask(address: Address) -> None:
    """Whoever opens a server to others hears what that means."""
    if address.is_loopback:
        return
    if address.token is None:
        told = f"anybody who reaches {address.host} may ask; name a --token-file to change that"
    else:
        told = f"whoever reaches {address.host} and has the token may ask"
    messages.print(
        f"{told}. What is sent is not encrypted: put a proxy with TLS in front of it",
        style="yellow",
        soft_wrap=True,
    )
