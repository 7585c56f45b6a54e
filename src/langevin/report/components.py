"""Parts of an HTML page. Text is escaped unless it was made here; figures are drawn into the page
itself."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LangevinError
from ..predict.results import TextScore
from .tables import Passage, ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARED = Path(__file__).parent / "assets"
"""Styles and scripts that the report and the page of the service have in common."""
VOID = ("meta", "img", "br")


class Html(str):
    """Text that is HTML already; any other string is escaped where it enters an element."""


def element(name: str, *children: str, **attributes: str | None) -> Html:
    """An element. `class_` is the attribute class, `http_equiv` is http-equiv; None leaves an
    attribute out."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opening = "".join(f' {key}="{escape(value)}"' for key, value in named.items())
    if name in VOID:
        return Html(f"<{name}{opening}>")
    return Html(f"<{name}{opening}>{joined(children)}</{name}>")


def joined(pieces: Iterable[str]) -> Html:
    return Html("".join(piece if isinstance(piece, Html) else escape(piece) for piece in pieces))


def parts(*pieces: str) -> Html:
    """Pieces one after another."""
    return joined(pieces)


def captioned_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> Html:
    """A table with a caption; the first column names the rows, numbers stand right and words
    left."""
    head = element("tr", *(element("th", column, scope="col") for column in columns))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", c, class_=kind(c)) for c in cells))
        for first, *cells in rows
    ]
    made = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body),
        class_="words" if words else "numbers",
    )
    return element("div", made, class_="wide")


def html_table(result: ResultTable) -> Html:
    rows = [[cell if isinstance(cell, str) else passage_html(cell) for cell in row]
            for row in result.rows]  # fmt: skip
    return captioned_table(result.title, result.columns, rows, words=result.words)


def passage_html(passage: Passage) -> Html:
    spans = (shaded(p.text, p.share, p.note) if p.note or p.share else element("span", p.text)
             for p in passage)  # fmt: skip
    marked = (element("mark", span) if p.marked else span
              for p, span in zip(passage, spans, strict=True))  # fmt: skip
    return element("span", *marked, class_="context")


def kind(cell: str) -> str | None:
    """Numbers are not broken into lines."""
    return "number" if not isinstance(cell, Html) and cell[:2].strip("-+∞—")[:1].isdigit() and len(cell) < 24 else None


def section(title: str, content: Html) -> Html:
    """A part of the page that its heading names; a link to it is #name_of(title)."""
    return element("section", element("h2", title, id=name_of(title)), content, aria_labelledby=name_of(title))


def name_of(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())


def figure(draw: Callable[[Axes], None], says: str, size: tuple[float, float] = (6.4, 3.8)) -> Html:
    """A figure as SVG inside the page; `says` stands below it and is what a screen reader reads
    instead."""
    picture = base64.b64encode(drawn(draw, size)).decode()
    image = element("img", src=f"data:image/svg+xml;base64,{picture}", alt=f"Figure: {says}")
    return element("figure", image, element("figcaption", says))


def drawn(draw: Callable[[Axes], None], size: tuple[float, float]) -> bytes:
    """SVG with letters as outlines: it looks the same whatever fonts the reader has."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise LangevinError("figures need matplotlib; install langevin[report]") from None
    made = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "langevin"}):
        sheet = Figure(figsize=size, layout="constrained")
        draw(sheet.add_subplot())
        sheet.savefig(made, format="svg", metadata={"Date": None})
    return made.getvalue()


def shaded(token: str, share: float, tells: str) -> Html:
    """A piece of text on a colour as strong as `share` (0 to 1); `tells` appears when one points at
    it."""
    return element("span", token, style=f"--share:{min(max(share, 0.0), 1.0):.2f}", title=tells, class_="token")


def text_to_read(score: TextScore, level: str, name: str) -> Html:
    """A scored text for the script of the page, which colours and explains its tokens."""
    told = json.dumps(score.to_dict() | {"level": level}).replace("<", "\\u003c")
    return element("script", Html(told), type="application/json", class_="scored", id=name)


def hash_of(script: str) -> str:
    """By which a policy allows a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
