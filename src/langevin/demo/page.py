"""The page of the demo: all that was measured, in one file."""

from __future__ import annotations

from .. import __version__
from ..report.components import Html, element, html_table, parts, section
from ..report.page import OWN_STYLE, POLICY, STYLE
from .course import DemoResult
from .pictures import coloured_lines, windows_as_dots
from .tables import (
    answers_result,
    foreign_meaning,
    foreign_result,
    sentences_in_words,
    sentences_result,
    text_in_words,
    text_result,
)

TITLE = "What three minutes of sampling give"
DRAWN = """figure { max-width: none; } figure svg { max-width: 100%; height: auto; }
.words th[scope=row] { white-space: normal; font-weight: 400; }
"""


def demo_page(result: DemoResult) -> str:
    """The whole page."""
    head = element(
        "head", element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{TITLE} — langevin"), element("style", Html(STYLE + OWN_STYLE + DRAWN)),
    )  # fmt: skip
    main = element(
        "main",
        section("The text", told(text_in_words(result), html_table(text_result(result)),
                                 element("p", "What the pool writes:", class_="note"),
                                 element("blockquote", result.written))),
        section("What it does not know", told(
            foreign_meaning(result), html_table(foreign_result(result)),
            framed(windows_as_dots(result.foreign), "Each dot is a window of the text."),
            framed(coloured_lines(result.foreign), "One sentence four ways, letter by letter."),
        )),
        section("The labelled sentences", told(
            sentences_in_words(result), html_table(sentences_result(result)),
            html_table(answers_result(result)),
            element("p", f"Definitions of WordNet 3.1, Princeton University. {caution(result)}",
                    class_="note"),
        )),
    )  # fmt: skip
    footer = element("footer", element("p", f"Written by langevin {__version__}: langevin demo"))
    body = element("body", element("header", element("h1", TITLE)), main, footer)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def told(words: str, *pieces: Html) -> Html:
    return parts(element("p", words), *pieces)


def framed(picture: str, says: str) -> Html:
    return element("figure", Html(picture), element("figcaption", says))


def caution(result: DemoResult) -> str:
    said = result.sentences.caution
    return f"Of the promise: {said}." if said else ""
