"""Examples on the page about a run: what it wrote and what it is unsure of, with the uncertainty as colour."""

from __future__ import annotations

from typing import Any

from .components import Html, element, joined, parts, shaded, table
from .explanation import token_sign
from .story import Story
from .uncertain import NAMES


def examples(story: Story) -> Html:
    """Text or captions that the averaged model wrote, then the most uncertain items of the split."""
    if story.uncertainty is None:
        return parts(element("p", "No samples were kept yet."))
    made = story.examples or {}
    wrote = [written(made)] if "tokens" in made else [captions(made)] if "images" in made else []
    legend = element("p", "The stronger the colour, the less the samples agree (mutual information of word and "
                          "weights; the numbers appear when one points at a word).", class_="note")
    shown = {"token": tokens, "word": captioned, "sentence": sentences}[story.uncertainty.unit]
    listed = shown(story.uncertainty.top, NAMES[story.uncertainty.by])
    return parts(*([legend] if story.uncertainty.unit != "sentence" else []), *wrote, listed)


def written(made: dict[str, Any]) -> Html:
    """Generated text, each token on the colour of its mutual information."""
    most = max([*made["epistemic"], 1e-12])
    space = " " if made["level"] == "word" else ""
    text = joined(
        part for token, p, std, unsure in zip(
            made["tokens"], made["probability"], made["std"], made["epistemic"], strict=True)
        for part in (shaded(token, unsure / most, f"p = {p:.3f} ± {std:.3f}, epistemic {unsure:.4f} nats"), space)
    )
    given = element("span", made["prompt"] + space, class_="given")
    return joined([
        element("h3", f"Text by the average of {made['samples']} samples"),
        element("p", "In grey the beginning of the split, which it continues at temperature 0.8."),
        element("p", given, text, class_="text"),
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
        table(f"Captions by the average of {made['samples']} samples", ("image", "caption", "log p ± std"), rows,
              words=True),
    ])


def tokens(top: list[dict[str, Any]], by: str) -> Html:
    most = max([*(item["score"] for item in top), 1e-12])
    rows = [
        (str(rank), in_context(item, most), token_sign(item["expected"]), f"{item['probability']:.4f} ± {item['std']:.4f}",
         f"{item['total']:.3f}", f"{item['epistemic']:.4f}")
        for rank, item in enumerate(top, 1)
    ]
    columns = ("rank", "token in its context", "expected", "p ± std", "total", "epistemic")
    return table(f"Most uncertain tokens, by {by}", columns, rows, words=True)


def in_context(item: dict[str, Any], most: float) -> Html:
    """The tokens around, the one at hand underlined."""
    space = " " if any(len(token) > 1 for token, _ in item["context"]) else ""
    pieces = list[str]()
    for place, (token, score) in enumerate(item["context"]):
        known = score is not None and score == score
        tells = f"{score:.4f}" if known else "not looked at"
        span = shaded(token_sign(token), score / most if known else 0.0, tells)
        pieces += [element("mark", span) if place == item["at"] else span, space]
    return element("span", *pieces, class_="context")


def captioned(top: list[dict[str, Any]], by: str) -> Html:
    most = max([*(score for item in top for _, score in item["context"]), 1e-12])
    rows = [
        (item["image"],
         joined(p for word, score in item["context"] for p in (shaded(word, score / most, f"{score:.4f}"), " ")),
         f"{item['log_prob']:.2f} ± {item['log_prob_std']:.2f}", f"{item['epistemic']:.4f}")
        for item in top
    ]
    columns = ("image", "caption in the data", "log p ± std", "epistemic / word")
    return table(f"Most uncertain captions of the split, by mean {by}", columns, rows, words=True)


def sentences(top: list[dict[str, Any]], by: str) -> Html:
    rows = [
        (str(rank), item["text"], item["true"],
         item["predicted"] if item["predicted"] == item["true"] else element("strong", item["predicted"], " ✗"),
         f"{item['probability']:.4f} ± {item['std']:.4f}", f"{item['total']:.3f}", f"{item['epistemic']:.4f}")
        for rank, item in enumerate(top, 1)
    ]
    columns = ("rank", "sentence", "class", "predicted", "p(class) ± std", "total", "epistemic")
    return table(f"Most uncertain sentences, by {by} (✗: wrong)", columns, rows, words=True)
