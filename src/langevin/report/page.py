"""One self-contained HTML page about a run: no request to anywhere, light or dark, made to print
too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .. import __version__
from ..errors import LangevinError
from ..files import write_atomic
from ..predict.ranking import TOKENS
from ..store.folder import REPORT
from .components import SHARED, Html, element, hash_of, name_of, section
from .instances import examples_section
from .sections import calibration, collections, cost, diagnostics, learning, overview, recipe
from .story import ReportData, gather
from ..process import Progress, SILENT

SECTIONS: dict[str, Callable[[ReportData], Html]] = {
    "Overview": overview, "Learning curves": learning, "Number of samples": collections,
    "Calibration and uncertainty": calibration, "Diagnostics": diagnostics, "Examples": examples_section, "Cost": cost,
    "Recipe and origin": recipe,
}

STYLE, SCRIPT = (
    (SHARED / f"components.{kind}").read_text("utf-8").replace("</", r"<\/") for kind in ("css", "js")
)
"""The same as on the page of 'langevin serve', and some more of our own."""
OWN_STYLE = """
h2 { padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: 1rem 0 0; }
figure { margin: 1rem 0 1.5rem; max-width: 40rem; }
figcaption { color: var(--faint); font-size: .9rem; margin-top: .35rem; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px; padding: .4rem; }
.figures { display: flex; flex-wrap: wrap; gap: 0 1.5rem; } .figures figure { flex: 1 1 26rem; }
section > pre { columns: 2 20rem; }
"""

POLICY = (
    f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src '{hash_of(SCRIPT)}'"
)
"""What the browser may load: pictures and styles of the page itself, and the one script that was
put there. Another would not run even if one got in."""


def write_report(
    path: Path, out: Path, *, split: str | None = None, tokens: int = TOKENS, overwrite: bool = False,
    skip_damaged: bool = False, progress: Progress = SILENT,
) -> None:
    """The page about the run in this folder; an existing file is kept unless `overwrite` is
    given."""
    if out.is_dir():
        raise LangevinError(f"expected a file to write, {out} is a folder; name one such as {out / REPORT}")
    if out.exists() and not overwrite:
        raise LangevinError(f"{out} exists; choose another --out or allow --overwrite")
    story = gather(path, split=split, tokens=tokens, skip_damaged=skip_damaged, progress=progress)
    write_atomic(out, report_page(story).encode())


def report_page(story: ReportData) -> str:
    """The whole page."""
    told = story.folder.recipe
    title = f"{Path(told.data.corpus).name}: {told.title or story.folder.path.name}"
    sections = [section(heading, make(story)) for heading, make in SECTIONS.items()]
    head = element(
        "head", element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} — langevin"), element("style", Html(STYLE + OWN_STYLE)),
    )
    header = element(
        "header", element("h1", title), element("p", f"Run folder: {story.folder.path}", class_="path"), contents()
    )
    footer = element("footer", element("p", f"Written by langevin {__version__}: langevin report"))
    body = element("body", header, element("main", *sections), footer,
                   element("script", Html(SCRIPT)))  # fmt: skip
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def contents() -> Html:
    """Links to the sections."""
    links = [element("li", element("a", heading, href=f"#{name_of(heading)}")) for heading in SECTIONS]
    return element("nav", element("ul", *links), aria_label="Contents")
