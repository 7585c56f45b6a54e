"""Pictures of the demo, drawn as SVG without any library: lines on colours, windows as dots."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .foreign import ForeignKind, ForeignTexts, Letter
from .tables import shades

LETTER, ROW, MARGIN, GAP = 7.3, 26.0, 16.0, 28.0
"""Pixels: the width of a letter, the height of a line, what is around, what is between."""
COLOURS = {"surprise": "230,130,0", "disagreement": "30,110,200"}
FONT = 'font-family="ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace"'
PLOT, NAMES, HIGH = 620.0, 190.0, 34.0
"""Width of the axis of the dots and of the names before it, height of a row of them."""


def coloured_lines(texts: ForeignTexts) -> str:
    """The lines twice: on the colour of their surprise, and of their disagreement beside it."""
    wide = max(map(len, texts.lines)) * LETTER
    starts = {of: MARGIN + number * (wide + GAP) for number, of in enumerate(COLOURS)}
    pieces = [heading_at(start, of) for of, start in starts.items()]
    for number, line in enumerate(texts.lines):
        top = 46 + number * ROW
        for of, start in starts.items():
            pieces += coloured_letters(line, of, start, top)
    width = 2 * MARGIN + 2 * wide + GAP
    return sheet(width, 46 + ROW * len(texts.lines) + MARGIN, pieces)


def heading_at(left: float, of: str) -> str:
    said = {"surprise": "surprise: −log p of each letter",
            "disagreement": "disagreement: what the members hold different"}  # fmt: skip
    return f'<text x="{left:.1f}" y="28" font-weight="bold">{said[of]}</text>'


def coloured_letters(line: Sequence[Letter], of: str, left: float, top: float) -> list[str]:
    """A rectangle behind each letter, then the line itself."""
    found = []
    for at, shade in enumerate(shades(line, of)):
        found.append(
            f'<rect x="{left + at * LETTER:.1f}" y="{top:.1f}" width="{LETTER + 0.2:.1f}" '
            f'height="20" fill="rgba({COLOURS[of]},{0.85 * shade.share:.2f})"/>'
        )
        found.append(
            f'<text x="{left + at * LETTER:.1f}" y="{top + 14.5:.1f}" {FONT} font-size="12" '
            f'xml:space="preserve">{escape(shade.text)}</text>'
        )
    return found


def windows_as_dots(texts: ForeignTexts) -> str:
    """A row for each kind of text, a dot for each window at its surprise."""
    most = max(max(kind.surprises) for kind in texts.kinds) * 1.05
    pieces = list[str]()
    for number, kind in enumerate(texts.kinds):
        pieces += row_of_dots(kind, 20 + number * HIGH, most)
    bottom = 20 + len(texts.kinds) * HIGH
    for nats in range(int(most) + 1):
        left = NAMES + PLOT * nats / most
        pieces.append(f'<line x1="{left:.1f}" y1="16" x2="{left:.1f}" y2="{bottom:.1f}" '
                      f'stroke="#ccc"/><text x="{left - 4:.1f}" y="{bottom + 16:.1f}">{nats}</text>')  # fmt: skip
    pieces.append(
        f'<text x="{NAMES + PLOT - 170:.1f}" y="{bottom + 34:.1f}">surprise, nats a byte</text>'
    )
    return sheet(NAMES + PLOT + MARGIN, bottom + 46, pieces)


def row_of_dots(kind: ForeignKind, top: float, most: float) -> list[str]:
    """Its name, and the dots, up and down in turn so that they are seen."""
    found = [f'<text x="{MARGIN:.1f}" y="{top + 18:.1f}">{escape(kind.name)}</text>']
    for number, nll in enumerate(kind.surprises):
        found.append(
            f'<circle cx="{NAMES + PLOT * nll / most:.1f}" cy="{top + 8 + number % 5 * 3:.1f}" '
            f'r="3.2" fill="rgba({COLOURS["surprise"]},.55)"/>'
        )
    return found


def sheet(width: float, height: float, pieces: Sequence[str]) -> str:
    """A picture on white, whatever the page is."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" font-family="system-ui,DejaVu Sans,sans-serif" font-size="13" '
        f'fill="#1c1c1c"><rect width="100%" height="100%" fill="#fff"/>{"".join(pieces)}</svg>\n'
    )
