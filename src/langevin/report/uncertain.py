"""The uncertainty of a run: scores, the parts of the uncertainty, the most uncertain items."""

from __future__ import annotations

import math

from ..predict.results import Uncertainty
from ..tasks.base import UncertainItem
from .explanation import token_sign
from .tables import Cells, Passage, ResultTable, Shade, models_by_metrics

NAMES = {
    "mutual_information": "mutual information", "entropy": "entropy",
    "standard_deviation": "standard deviation", "max_probability": "1 − largest probability",
}  # fmt: skip
GROUPS = {"token": "tokens", "word": "captions", "sentence": "sentences"}
"""What is ranked, by the unit of what is predicted."""


def uncertainty_tables(result: Uncertainty) -> list[ResultTable]:
    """Scores, parts, then the list."""
    return [item_scores_table(result), parts_table(result), *([top_table(result)] if result.top else [])]


def item_scores_table(result: Uncertainty) -> ResultTable:
    """The last sample and the average."""
    models = {"last sample": result.last, f"average of {result.samples}": result.averaged}
    return models_by_metrics(
        f"{result.run} on {result.split}: {counted(result)}",
        {label: {name: value for name, value in scores.present().items() if name != "items"}
         for label, scores in models.items()},
    )  # fmt: skip


def counted(result: Uncertainty) -> str:
    """How many items, and of how many, where not all were looked at."""
    if result.items >= result.available:
        return f"all {result.items:,} {result.unit}s"
    return f"{result.items:,} of {result.available:,} {result.unit}s (more by --tokens)"


def parts_table(result: Uncertainty) -> ResultTable:
    alone = result.samples == 1
    rows: list[Cells] = [
        ("entropy", f"{result.entropy:.4f}", "of the averaged prediction: uncertain in all"),
        ("aleatoric", f"{result.aleatoric:.4f}", "mean over the samples: inherent in the data"),
        ("mutual information", f"{result.mutual_information:.4f}",
         "none of one sample" if alone else "their difference: what the samples disagree about"),
        ("disagreement", f"{result.disagreement:.1%}", "samples whose own answer is another"),
    ]  # fmt: skip
    if result.unknown_share:
        rows.append(("unknown", f"{result.unknown_share:.1%}", "of the words are <unk> to the model"))
    title = f"mean uncertainty per {result.unit}, in nats"
    return ResultTable(title, ("part", "", "what it is"), tuple(rows), words=True)


def top_table(result: Uncertainty) -> ResultTable:
    """The most uncertain tokens in context, sentences, or captions."""
    make_rows = {"token": token_rows, "word": caption_rows, "sentence": sentence_rows}[result.unit]
    columns, rows = make_rows(result.top)
    title = f"most uncertain {GROUPS[result.unit]} by {NAMES[result.by]}"
    title += "" if result.unit == "sentence" else " (the stronger the colour, the less certain)"
    return ResultTable(title, columns, tuple(rows), words=True)


Rows = tuple[tuple[str, ...], list[Cells]]


def token_rows(top: tuple[UncertainItem, ...]) -> Rows:
    most = max(item.score for item in top)
    return ("rank", "token in its context", "expected", "p ± std", "entropy (nats)", "mutual inf. (nats)"), [
        (str(rank), context_of(item, most), token_sign(item.predicted or ""), p_and_std(item),
         f"{item.entropy:.3f}", f"{item.mutual_information:.4f}")
        for rank, item in enumerate(top, 1)
    ]  # fmt: skip


def sentence_rows(top: tuple[UncertainItem, ...]) -> Rows:
    columns = ("rank", "sentence", "class", "p ± std", "predicted (✗: wrong)", "p ± std",
               "entropy (nats)", "mutual inf. (nats)")  # fmt: skip
    return columns, [
        (str(rank), item.text, item.label or "", p_and_std(item),
         f"{item.predicted}{'' if item.label == item.predicted else ' ✗'}",
         f"{item.confidence:.4f} ± {item.confidence_std:.4f}", f"{item.entropy:.3f}",
         f"{item.mutual_information:.4f}")
        for rank, item in enumerate(top, 1)
    ]  # fmt: skip


def caption_rows(top: tuple[UncertainItem, ...]) -> Rows:
    most = max((score for item in top for _, score in item.context), default=1.0)
    return ("image", "caption", "log p ± std", "entropy / word", "mutual information / word"), [
        (item.source or "", context_of(item, most), f"{item.log_p:.2f} ± {item.log_p_std:.2f}",
         f"{item.entropy:.3f}", f"{item.mutual_information:.4f}")
        for item in top
    ]  # fmt: skip


def p_and_std(item: UncertainItem) -> str:
    return f"{item.p:.4f} ± {item.std:.4f}"


def context_of(item: UncertainItem, most: float) -> Passage:
    """Its words as strong as their scores; what was not looked at is not coloured."""
    words = any(len(token) > 1 for token, _ in item.context)
    pieces = list[Shade]()
    for place, (token, score) in enumerate(item.context):
        known = not math.isnan(score)
        share = min(1.0, max(score, 0.0) / max(most, 1e-12)) if known else 0.0
        note = f"{score:.4f}" if known else "not looked at"
        pieces.append(Shade(token_sign(token), share, note, marked=place == item.at))
        pieces += [Shade(" ")] if words else []
    return tuple(pieces)
