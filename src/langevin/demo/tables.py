"""What the demo found, as tables and sentences; terminal and page show the same."""

from __future__ import annotations

from collections.abc import Sequence

from ..posterior.scores import ComparedScores
from ..predict.pooled import POOL, READING_ON
from ..report.tables import ResultTable, Shade
from .course import DemoResult
from .foreign import Letter
from .sentences import Classifier

STRONGEST = {"surprise": 7.0, "disagreement": 0.3}
"""Nats a byte from which on the colour is the strongest."""


def text_result(result: DemoResult) -> ResultTable:
    """The paper's numbers, then ours, static and reading on."""
    found = {line.name: line for line in result.text.compared}
    rows = [
        (f"the paper's {cell}, sampled", f"{nll:.4f}", "") for cell, nll in result.paper.items()
    ]
    rows += [
        (name, nll_cell(line), nll_cell(found.get(name + READING_ON)))
        for name, line in found.items() if not name.endswith(READING_ON)
    ]  # fmt: skip
    return ResultTable(
        f"1. War and Peace, {result.text.averaged.items:,} unseen bytes: surprise in nats a byte, "
        f"less is better", ("model", "as it is", "reading on"), tuple(rows), named=True,
    )  # fmt: skip


def nll_cell(line: ComparedScores | None) -> str:
    return "" if line is None else f"{line.scores.nll:.4f}"


def text_in_words(result: DemoResult) -> str:
    """Is the pool ahead of the paper, and of its members?"""
    found = {line.name: line.scores.nll for line in result.text.compared}
    best = min(result.paper.values())
    by = found[POOL] - best
    paper = f"The pool is {abs(by):.3f} nats {'below' if by < 0 else 'above'} the paper's best."
    return f"{paper} {result.text.verdict or ''}".strip()


def foreign_result(result: DemoResult) -> ResultTable:
    """A row for each kind of text."""
    rows = tuple(
        (kind.name, f"{kind.nll:.2f}", f"{100 * kind.percentile:.0f}",
         auroc_text(kind.surprise_auroc), auroc_text(kind.disagreement_auroc))
        for kind in result.foreign.kinds
    )  # fmt: skip
    columns = ("text", "nats a byte", "percentile", "AUROC", "by disagreement")
    most = max(kind.windows for kind in result.foreign.kinds)
    title = (f"2. Does it know what it does not know? Windows of {result.foreign.window} bytes, up "
             f"to {most} of each text")  # fmt: skip
    return ResultTable(title, columns, rows, named=True)


def auroc_text(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def foreign_meaning(result: DemoResult) -> str:
    """What the columns mean, and which of the two tells foreign text better."""
    pairs = [(kind.surprise_auroc or 0.0, kind.disagreement_auroc or 0.0)
             for kind in result.foreign.kinds if kind.surprise_auroc is not None]  # fmt: skip
    ahead = sum(surprise >= disagreement for surprise, disagreement in pairs)
    return (f"Percentile: how many of {result.foreign.held_out} other unseen windows of the book "
            f"surprise less than the middle window of this text. AUROC: how often a foreign window "
            f"surprises (or divides the members) more than one of unseen Tolstoy; .5 is chance. "
            f"Surprise tells {ahead} of {len(pairs)} foreign texts at least as well as "
            f"disagreement does.")  # fmt: skip


def sentences_result(result: DemoResult) -> ResultTable:
    """A row for each classifier."""
    found = result.sentences
    rows = tuple(
        (each.name, f"{each.nll:.3f}", f"{100 * each.error:.1f}", *promise_cells(each))
        for each in found.classifiers
    )
    title = (f"3. What does this define? {len(found.classes)} kinds, {found.sizes['train']:,} "
             f"definitions learnt, {found.sizes['test']:,} tested; at most {100 * found.risk:g} % "
             f"errors promised")  # fmt: skip
    columns = ("classifier", "nll (nats)", "error (%)", "accepted (%)", "of them wrong (%)")
    return ResultTable(title, columns, rows, named=True)


def promise_cells(each: Classifier) -> tuple[str, str]:
    if each.promise is None:
        return "none", ""
    return f"{100 * each.promise.coverage:.1f}", f"{100 * each.promise.risk:.1f}"


def sentences_in_words(result: DemoResult) -> str:
    """What was promised, and what became of it."""
    found = result.sentences
    *_, ours = found.classifiers
    head = (f"Rules for accepting answers were learnt on {found.sizes['valid']:,} other "
            f"definitions: at most {100 * found.risk:g} % of accepted answers are wrong, with "
            f"{100 * found.confidence:g} % confidence.")  # fmt: skip
    if ours.promise is None:
        return f"{head} Such a promise was not possible here."
    kept = "kept" if ours.promise.held else "broken"
    return (f"{head} On the test ours was {kept}: {ours.promise.errors} of "
            f"{ours.promise.accepted:,} accepted answers are wrong, the rest goes to a person.")  # fmt: skip


def answers_result(result: DemoResult) -> ResultTable:
    """Some definitions, what was answered, and who decides."""
    rows = tuple(
        (each.text, each.label, each.answer, f"{each.p:.3f}",
         "accepted" if each.accepted else "to a person")
        for each in result.sentences.answers
    )  # fmt: skip
    columns = ("definition", "filed under", "answer", "p", "decision")
    return ResultTable("the first of the test set on either side", columns, rows, words=True)


def shades(line: Sequence[Letter], of: str) -> tuple[Shade, ...]:
    """A line on colours: of "surprise" or "disagreement"."""
    return tuple(
        Shade(letter.letter, min(getattr(letter, of) / STRONGEST[of], 1.0),
              f"surprise {letter.surprise:.2f}, disagreement {letter.disagreement:.3f} nats")
        for letter in line
    )  # fmt: skip
