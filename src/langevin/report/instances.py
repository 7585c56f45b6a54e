"""Examples on the page about a run: what it wrote and what it is unsure of, with the uncertainty as
colour."""

from __future__ import annotations

from typing import Any

from .components import Html, element, html_table, joined, parts, shaded, captioned_table, text_to_read
from .story import ReportData
from .uncertain import top_table

LEGEND = element(
    "p", "The stronger the colour, the less the samples agree (mutual information of word and "
    "weights; the numbers appear when one points at a word).", class_="note",
)


def examples_section(story: ReportData) -> Html:
    """Text or captions that the average wrote, then the most uncertain items of the split."""
    if story.ranked is None:
        return parts(element("p", "No samples were kept yet."))
    made, result = story.examples or {}, story.ranked.result
    wrote = [generated_text(made)] if "score" in made else [captions(made)] if "images" in made else []
    listed = [html_table(top_table(result))] if result.top else []
    return parts(*([LEGEND] if result.unit != "sentence" else []), *wrote, *listed)


def generated_text(made: dict[str, Any]) -> Html:
    """Generated text, each token coloured, and explained to who points at it."""
    given = element("p", made["prompt"], class_="given text")
    return joined([
        element("h3", f"Text by the average of {made['score'].samples} samples"),
        element("p", "In grey the beginning of the split, which it continues at temperature 0.8."),
        given, text_to_read(made["score"], made["level"], "written"),
    ])


def captions(made: dict[str, Any]) -> Html:
    """Captions by beam search, each word on the colour of its spread over the samples."""
    rows = []
    for picture in made["images"]:
        for caption in picture.captions:
            words = joined(
                part for word in caption.words[:-1] for part in (
                    shaded(word.word, 2 * word.std, f"p = {word.p:.3f} ± {word.std:.3f}"), " ")
            ) or "(no word)"
            rows.append((picture.image, words, f"{caption.log_p:.2f} ± {caption.log_p_std:.2f}"))
    note = "Found by beam search (5). Here the colour is the standard deviation of a word's probability."
    return joined([
        element("p", note, class_="note"),
        captioned_table(f"Captions by the average of {made['samples']} samples", ("image", "caption", "log p ± std"), rows,
              words=True),
    ])
