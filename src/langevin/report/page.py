"""One self-contained HTML page about a run: no script, no request to anywhere, light or dark, made to print too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .. import __version__
from ..errors import LangevinError
from ..files import write_atomic
from ..predict.ranking import TOKENS
from ..store.folder import REPORT
from .components import Html, element, name_of, section
from .instances import examples_section
from .sections import calibration, collections, cost, diagnostics, learning, overview, recipe
from .story import ReportData, gather
from ..process import Progress, SILENT

SECTIONS: dict[str, Callable[[ReportData], Html]] = {
    "Overview": overview, "Learning curves": learning, "Number of samples": collections,
    "Calibration and uncertainty": calibration, "Diagnostics": diagnostics, "Examples": examples_section, "Cost": cost,
    "Recipe and origin": recipe,
}

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What the browser may load: pictures and styles of the page itself. A script would not run even if one got in."""

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1c; --page: #fdfdfb; --faint: #5c5c5c; --line: #d5d5d0;
  --band: #f2f2ee; --shade: 230, 130, 0; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e1; --page: #181a1c; --faint: #a6a8a6; --line: #3c4043;
  --band: #22262a; --shade: 240, 120, 0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1.25rem 4rem; background: var(--page); color: var(--text);
  font: 1rem/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { max-width: 46rem; } .path, .note, footer { color: var(--faint); font-size: .9rem; overflow-wrap: anywhere; }
.headline { font-size: 1.1rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; margin: 1rem 0 0; }
a { color: inherit; text-underline-offset: .2em; }
.wide { overflow-x: auto; margin: 1rem 0 1.5rem; }
table { border-collapse: collapse; min-width: min(100%, 32rem); font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line); }
.words th, .words td, th:first-child { text-align: left; } th { font-weight: 600; }
.words tbody th { white-space: nowrap; } tbody th { font-weight: 500; } td { overflow-wrap: anywhere; }
.number { white-space: nowrap; }
figure { margin: 1rem 0 1.5rem; max-width: 40rem; } figcaption { color: var(--faint); font-size: .9rem;
  margin-top: .35rem; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px; padding: .4rem; }
.figures { display: flex; flex-wrap: wrap; gap: 0 1.5rem; } .figures figure { flex: 1 1 26rem; }
pre { background: var(--band); padding: 1rem; border-radius: 6px; overflow-x: auto; font-size: .85rem;
  columns: 2 20rem; white-space: pre-wrap; overflow-wrap: anywhere; }
pre, .text, .context { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.text { background: var(--band); padding: 1rem; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere;
  max-width: none; font-size: .9rem; line-height: 1.8; }
.context { font-size: .85rem; } .given { color: var(--faint); }
.shaded { background: rgba(var(--shade), calc(var(--share) * .6)); border-radius: 3px; print-color-adjust: exact; }
mark { background: none; color: inherit; font-weight: 700; text-decoration: underline 2px; text-underline-offset: 3px; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
  h2, h3, caption { break-after: avoid; } figure, tr { break-inside: avoid; } .wide { overflow: visible; } }
"""


def write_report(
    path: Path, out: Path, *, split: str | None = None, tokens: int = TOKENS, overwrite: bool = False,
    skip_damaged: bool = False, progress: Progress = SILENT,
) -> None:
    """The page about the run in this folder; an existing file is kept unless `overwrite` is given."""
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
        element("title", f"{title} — langevin"), element("style", Html(STYLE)),
    )
    header = element(
        "header", element("h1", title), element("p", f"Run folder: {story.folder.path}", class_="path"), contents()
    )
    footer = element("footer", element("p", f"Written by langevin {__version__}: langevin report"))
    body = element("body", header, element("main", *sections), footer)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def contents() -> Html:
    """Links to the sections."""
    links = [element("li", element("a", heading, href=f"#{name_of(heading)}")) for heading in SECTIONS]
    return element("nav", element("ul", *links), aria_label="Contents")
