"""Word probabilities as colours: in the terminal and as a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.text import Text

from ..data.display import visible
from ..errors import LangevinError
from ..predict.results import MeasuredText, TextScore
from ..store.samples import choose
from .figures import write_figure
from .terminal import table

Rows = list[tuple[str, list[float]]]
"""Probabilities of all tokens under names: some parts, then the average."""


def explanation_table(title: str, score: TextScore, parts: int) -> Group:
    """A row for each token: p by some of the parts, averaged, the spread over all of them."""
    rows = rows_of(score, parts)
    columns = ["token", *(label for label, _ in rows), "± std"]
    lines: list[list[str | Text]] = [
        [Text(token), *(colour_of_p(row[at]) for _, row in rows), f"{score.tokens[at].std:.4f}"]
        for at, token in enumerate(tokens_of(score))
    ]
    return table(f"{title}: probability of each token", columns, lines)


def rows_of(score: TextScore, parts: int) -> Rows:
    """Some samples, evenly spread over those there are; other members in any case."""
    samples = choose(list(range(score.samples)), "thinned", min(parts, score.samples))
    numbers = [*samples, *range(score.samples, len(score.labels))]
    rows = [(score.labels[n], [token.parts[n] for token in score.tokens]) for n in numbers]
    if len(score.labels) > score.samples:
        means = [sum(token.parts[: score.samples]) / score.samples for token in score.tokens]
        rows.insert(len(samples), (f"average of {score.samples}", means))
    name = "pool" if len(score.labels) > score.samples else "average"
    return [*rows, (name, [token.p for token in score.tokens])]


def disagreement_in_words(score: TextScore) -> str:
    """How much of the uncertainty the parts disagree about, and who with whom."""
    count = len(score.tokens)
    entropy = sum(token.entropy for token in score.tokens) / count
    between = sum(token.between_members for token in score.tokens) / count
    within = sum(token.mutual_information for token in score.tokens) / count - between
    whole = f"Of {entropy:.3f} nats of entropy a token, {between + within:.3f} are disagreement"
    if len(score.labels) == score.samples:
        return f"{whole} of the samples."
    return f"{whole}: {between:.3f} between the members, {within:.3f} within the samples."


def tokens_of(score: TextScore) -> list[str]:
    """As they are shown; a word that became <unk> with it."""
    return [token_sign(token.token if token.word is None else f"<unk:{visible(token.word)}>")
            for token in score.tokens]  # fmt: skip


def draw_explanation(tokens: Sequence[str], rows: Rows, path: Path) -> None:
    """The figure: the rows one under the other, tokens as columns, log-probability as colour."""
    try:
        import matplotlib
    except ImportError:
        raise LangevinError("figures need matplotlib; install langevin[report]") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    width = max(4.0, 0.55 * len(tokens))
    figure, axes = pyplot.subplots(figsize=(width, 0.5 * len(rows) + 1.2), layout="constrained")
    logarithms = [[math.log10(max(p, 1e-9)) for p in row] for _, row in rows]
    image = axes.imshow(logarithms, cmap="viridis", aspect="auto")
    for y, (_, row) in enumerate(rows):
        for x, p in enumerate(row):
            ink = "white" if p < 0.03 else "black"
            axes.text(x, y, f"{p:.2g}", ha="center", va="center", fontsize=6, color=ink)
    axes.set_xticks(range(len(tokens)), tokens, rotation=60, fontsize=8)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    figure.colorbar(image, label="log₁₀ p")
    write_figure(path, figure)
    pyplot.close(figure)


def scores_table(title: str, texts: Sequence[MeasuredText]) -> Group:
    """A row for each text."""
    columns = ["text", "tokens", "nll (nats)", "perplexity", "bits per byte", "unknown %"]
    lines = []
    for text in texts:
        bits, unknown = text.scores.bits_per_byte, text.scores.unknown_share
        lines.append([
            excerpt(text.source), str(text.scores.items), f"{text.scores.nll:.4f}",
            f"{text.scores.perplexity:.2f}", "" if bits is None else f"{bits:.3f}",
            f"{100 * (unknown or 0):.1f}",
        ])  # fmt: skip
    return table(title, columns, lines)


def excerpt(text: str, most: int = 40) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(visible(text[: 2 * most]).split())
    return line if len(line) <= most and len(text) <= 2 * most else f"{line[: most - 1]}…"


def colour_of_p(p: float) -> Text:
    """Green where the model expected the token, red where it was surprised."""
    surprise = min(-math.log10(max(p, 1e-6)) / 4, 1.0)
    return Text(f"{p:.4f}", style=f"rgb({round(60 + 180 * surprise)},{round(200 - 140 * surprise)},80)")


def token_sign(token: str) -> str:
    """A space as a sign, and a dot for a byte whose letter stands before it."""
    return {" ": "␣", "": "·"}.get(token, token)
