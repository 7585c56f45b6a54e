"""The uncertainty of a run in the terminal: totals, calibration, and the most uncertain items in colour."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from .tables import shown_number
from .explanation import token_sign
from .terminal import table

NAMES = {
    "mutual_information": "mutual information", "entropy": "entropy", "standard_deviation": "standard deviation",
    "max_probability": "1 − largest probability",
}
METRICS = {"nll": "NLL (nats)", "brier": "Brier", "error": "error (%)", "ece": "ECE"}


def uncertainty_page(result: dict[str, Any]) -> Group:
    """Totals first, then the list."""
    shown = [top_table(result)] if result["top"] else []
    return Group(totals_table(result), parts_line(result), *shown)


def totals_table(result: dict[str, Any]) -> Group:
    """Scores of the last sample and of the average."""
    rows = [(name, *(shown_number(metric, result[key][metric]) for metric in METRICS))
            for name, key in (("last sample", "last"), (f"average of {result['samples']}", "averaged"))]
    return table(f"{result['run']} on {result['split']}: {counted(result)}", ("model", *METRICS.values()), rows)


def counted(result: dict[str, Any]) -> str:
    """How many items, and of how many, where not all were looked at."""
    items, available, unit = result["items"], result["available"], result["unit"]
    if items >= available:
        return f"all {items:,} {unit}s"
    return f"{items:,} of {available:,} {unit}s (more by --tokens)"


def parts_line(result: dict[str, Any]) -> Text:
    parts = result["uncertainty"]
    line = (
        f"uncertainty per {result['unit']}, nats: total {parts['total']:.4f} = aleatoric {parts['aleatoric']:.4f} + "
        f"epistemic {parts['epistemic']:.4f}; samples disagree with the answer in {parts['disagreement']:.1%}"
    )
    return Text(line + (" (one sample has no epistemic part)" if result["samples"] == 1 else ""))


def top_table(result: dict[str, Any]) -> Group:
    """The most uncertain tokens in context, sentences, or captions."""
    made = {"token": token_rows, "word": caption_rows, "sentence": sentence_rows}[result["unit"]]
    columns, rows = made(result["top"])
    what = {"token": "tokens", "word": "captions", "sentence": "sentences"}[result["unit"]]
    title = f"most uncertain {what} by {NAMES[result['by']]}"
    title += "" if result["unit"] == "sentence" else " (the brighter, the less certain)"
    return table(title, columns, rows, words=True)


Rows = tuple[tuple[str, ...], list[tuple[str | Text, ...]]]


def token_rows(top: list[dict[str, Any]]) -> Rows:
    most = max(item["score"] for item in top)
    return ("in its context", "expected", "p ± std", "total", "epistemic"), [
        (coloured(item["context"], most, item["at"]), token_sign(item["expected"]), p_and_std(item),
         f"{item['total']:.3f}", f"{item['epistemic']:.4f}")
        for item in top
    ]


def sentence_rows(top: list[dict[str, Any]]) -> Rows:
    columns = ("sentence", "class", "p ± std", "predicted", "p ± std", "total", "epistemic")
    return columns, [
        (Text(item["text"]), Text(item["true"]), p_and_std(item),
         Text(item["predicted"], style="green" if item["true"] == item["predicted"] else "yellow"),
         f"{item['confidence']:.4f} ± {item['predicted_std']:.4f}", f"{item['total']:.3f}",
         f"{item['epistemic']:.4f}")
        for item in top
    ]


def caption_rows(top: list[dict[str, Any]]) -> Rows:
    most = max((score for item in top for _, score in item["context"]), default=1.0)
    return ("image", "caption", "log p ± std", "total / word", "epistemic / word"), [
        (Text(item["image"]), coloured([(f"{word} ", score) for word, score in item["context"]], most),
         f"{item['log_prob']:.2f} ± {item['log_prob_std']:.2f}", f"{item['total']:.3f}", f"{item['epistemic']:.4f}")
        for item in top
    ]


def p_and_std(item: dict[str, Any]) -> str:
    return f"{item['probability']:.4f} ± {item['std']:.4f}"


def coloured(context: list[tuple[str, float | None]], most: float, at: int | None = None) -> Text:
    """Tokens in colours of their scores; the one at hand between brackets, to be found without colour."""
    words = any(len(token) > 1 for token, _ in context)
    text = Text()
    for place, (token, score) in enumerate(context):
        share = 0.0 if score is None or score != score else min(1.0, score / max(most, 1e-12))
        style = f"rgb({round(120 + 135 * share)},{round(120 + 40 * share)},{round(120 - 100 * share)})"
        shown = token_sign(token)
        text.append(f"⟦{shown}⟧" if place == at else shown, style=f"bold {style}" if place == at else style)
        text.append(" " if words and at is not None else "")
    return text
